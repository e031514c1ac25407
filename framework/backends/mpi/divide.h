#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx::mpi {

/// Divides each element of a contiguous float32, float64 or int64 tensor on the CPU in place; int64 rounds toward zero.
/// Unlike Tensor::div_() also for parameters that require gradients, and in the calling thread alone.
void divide(const at::Tensor& tensor, int divisor);

}  // namespace phalanx::mpi
