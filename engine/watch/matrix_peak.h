// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

enum class PeakEffort {
  kThorough,  // takes about a second
  kQuick,     // takes some hundredths of a second, and may be a few per cent too low
};

/// Returns the floating-point operations a second that one core computes in float32 matrix products: the best of some
/// large square ones, by LibTorch's product and by the one that models use (models/apply_linear.h), with the kernels
/// that this process uses (kernels::use_kernels). Other cores should be idle.
double measure_matrix_peak(PeakEffort effort = PeakEffort::kThorough);

}  // namespace phalanx
