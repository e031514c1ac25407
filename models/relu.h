// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Applies ReLU in the memory of `x`, which nothing else may need, and returns `x`. A function for Sequence.
inline at::Tensor relu_in_place(const at::Tensor& x) { return at::Tensor(x).relu_(); }

}  // namespace phalanx
