#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Registers vector code (vector_max_pool.h) for max_pool2d_with_indices of float32 images on the CPU whose channels
/// lie one after the other, functional and into given memory. The result is LibTorch's, bit for bit. Other tensors go
/// to LibTorch's kernels; where channels lie together (channels_last) these are vector code too. `library` is one of
/// at::DispatchKey::CPU for namespace aten.
void add_max_pool(torch::Library& library);

}  // namespace phalanx::kernels
