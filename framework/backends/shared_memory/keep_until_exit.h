// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx::shared_memory {

/// Never frees this tensor. If peers reach this rank's memory directly, a late peer may still read or write it after
/// this rank has given up the operation. Thread-safe.
void keep_until_exit(const at::Tensor& tensor);

}  // namespace phalanx::shared_memory
