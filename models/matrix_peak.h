// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

enum class PeakEffort {
  kThorough,  // takes about a second
  kQuick,     // takes some hundredths of a second, and may be a few per cent too low
};

/// Returns the floating-point operations per second of one core in float32 matrix products. This is the best rate of
/// several large square products, computed by LibTorch and by the function that models use (models/apply_linear.h),
/// with the kernels of this process (kernels::use_kernels). Other cores should be idle.
double measure_matrix_peak(PeakEffort effort = PeakEffort::kThorough);

}  // namespace phalanx
