// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx::testing {

/// The model "dropout_under_test" has one hidden layer, and drops half of it in training. Returns the masks, [n,
/// hidden] of 0 and 2, of all forward passes in training in this process.
std::vector<at::Tensor>& dropped();

}  // namespace phalanx::testing
