// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace phalanx::testing {

/// The model "dropout_under_test" has one hidden layer, half of which it leaves out in training. What it has left out,
/// [n, hidden] of 0 and 2, of each forward in training, in this process.
std::vector<at::Tensor>& dropped();

}  // namespace phalanx::testing
