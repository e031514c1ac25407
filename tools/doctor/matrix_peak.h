#pragma once

namespace phalanx::doctor {

/// Returns the floating-point operations a second that one core computes in float32 matrix products: the best of some
/// large square ones, by LibTorch's product and by the one that models use (models/apply_linear.h), with the kernels
/// that this process uses (kernels::use_kernels). Other cores should be idle. Takes about a second.
double measure_matrix_peak();

}  // namespace phalanx::doctor
