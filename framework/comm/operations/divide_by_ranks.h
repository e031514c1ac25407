// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

namespace phalanx {

/// Divides a sum, which may be on any device, by the number of ranks, for Reduction::kMean. Floats and doubles get the
/// same bits on all devices: LibTorch's kernels for CUDA multiply by the reciprocal of a divisor that is a number, but
/// divide by one that is a tensor on the device. Of the half types, whose elements they round only once at the end, few
/// elements differ by a last bit.
inline void divide_by_ranks(at::Tensor sum, int ranks) {
  const bool exact = sum.scalar_type() == at::kFloat || sum.scalar_type() == at::kDouble;
  if (exact && !sum.is_cpu()) {
    sum.div_(at::full({}, ranks, sum.options()));
  } else {
    sum.div_(ranks);
  }
}

}  // namespace phalanx
