// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>

namespace phalanx {

/// The number of an update, from 1, as LibTorch's fused kernels take it: [], where `values` are. On devices they want
/// float32, which is exact up to 2^24; by then the powers of betas that it is for are 0.
inline at::Tensor fused_step(const at::Tensor& values, std::int64_t update) {
  const auto dtype = values.is_cpu() ? at::kDouble : at::kFloat;
  return at::full({}, static_cast<double>(update), at::device(values.device()).dtype(dtype));
}

}  // namespace phalanx
