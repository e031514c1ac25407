// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/function_schema.h>

namespace phalanx::testing {

/// Returns true if LibTorch for CUDA has a kernel for the operator, or one that it uses for every device. The list is
/// made from LibTorch's headers (list_cuda_operators.py).
bool is_on_cuda(const c10::FunctionSchema& schema);

}  // namespace phalanx::testing
