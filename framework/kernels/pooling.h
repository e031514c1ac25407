// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Registers vector code for pooling of float32 images on the CPU whose channels lie one after the other:
/// max_pool2d_with_indices, functional and into given memory, whose result is LibTorch's, bit for bit
/// (vector_max_pool.h); and avg_pool2d and _adaptive_avg_pool2d with their gradients, the latter if all windows have
/// one size (vector_average_pool.h). Other tensors go to LibTorch's kernels; where channels lie together
/// (channels_last) these are vector code too. `library` is one of at::DispatchKey::CPU for namespace aten.
void add_pooling(torch::Library& library);

}  // namespace phalanx::kernels
