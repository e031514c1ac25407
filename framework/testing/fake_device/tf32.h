// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace phalanx::testing {

/// Returns true if LibTorch's settings let GPUs round the factors of this operator to TF32: those of convolutions and
/// recurrent layers (cuDNN), or those of matrix products (cuBLAS).
bool rounds_to_tf32(std::string_view operator_name);

/// Returns a float32 tensor with the elements rounded to 10 bits after the first, as the units for matrices of GPUs do
/// it. Returns other tensors as they are.
at::Tensor rounded_to_tf32(const at::Tensor& tensor);

}  // namespace phalanx::testing
