// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

namespace phalanx::kernels {

/// Returns the largest absolute error of a result.
inline double largest_error(const at::Tensor& result, const at::Tensor& exact) {
  return (result.to(at::kDouble) - exact).abs().max().item<double>();
}

/// Returns the distance from the largest absolute value to the next float32 number.
inline double unit_of(const at::Tensor& exact) {
  const auto largest = static_cast<float>(exact.abs().max().item<double>());
  return std::nextafter(largest, std::numeric_limits<float>::infinity()) - largest;
}

/// Returns the result of `compute` while LibTorch has this number of threads.
template <class Compute>
auto with_threads(int threads, const Compute& compute) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = compute();
  at::set_num_threads(before);
  return result;
}

}  // namespace phalanx::kernels
