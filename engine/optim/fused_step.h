// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>

namespace phalanx {

/// Returns the number of an update, from 1, in the form that LibTorch's fused kernels need: [], on the device of
/// `values`. On devices it must be float32, which is exact up to 2^24; by then the powers of betas that are computed
/// from it are 0.
inline at::Tensor fused_step(const at::Tensor& values, std::int64_t update) {
  const auto dtype = values.is_cpu() ? at::kDouble : at::kFloat;
  return at::full({}, static_cast<double>(update), at::device(values.device()).dtype(dtype));
}

}  // namespace phalanx
