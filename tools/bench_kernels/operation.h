// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace phalanx::bench_kernels {

/// Holds a computation that is measured. Its tensors are its own, and have float32 elements.
struct Operation {
  std::string name;                               // "gelu backward"
  std::string shape;                              // "1048576", "4096x1024x1024"
  double operations = 0;                          // floating-point operations of a call; 0: not counted
  std::function<std::function<void()>()> make{};  // makes the tensors, and returns what computes on them once
};

/// Everything that is measured: products of matrices in the forms that layers need, activations, pooling, dropout,
/// losses, normalization, attention and convolutions.
std::vector<Operation> operations();

}  // namespace phalanx::bench_kernels
