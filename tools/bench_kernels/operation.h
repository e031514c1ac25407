// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace phalanx::bench_kernels {

/// A computation that is measured. It makes its own tensors, which have float32 elements.
struct Operation {
  std::string name;                               // "gelu backward"
  std::string shape;                              // "1048576", "4096x1024x1024"
  double operations = 0;                          // floating-point operations of a call; 0: not counted
  std::function<std::function<void()>()> make{};  // makes the tensors; the result computes with them once
};

/// Returns all operations: matrix products in the forms that layers need, activations, pooling, dropout, losses,
/// normalization, attention and convolutions.
std::vector<Operation> operations();

}  // namespace phalanx::bench_kernels
