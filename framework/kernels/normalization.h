// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Registers batch norm in training, `native_batch_norm` and `_native_batch_norm_legit`, for contiguous float32 tensors
/// [images, channels, ...] with at least 16 elements in each image and channel; LibTorch computes the others, and all
/// gradients. The saved mean and inverse standard deviation are rounded from float64, as LibTorch's are. Results do not
/// depend on the number of threads.
void add_normalization(torch::Library& library);

}  // namespace phalanx::kernels
