// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Registers vector code (vector_convolution.h) for two-dimensional convolutions and their gradients. It covers float32
/// images on the CPU whose channels lie one after the other, with stride 1, one group and few input channels: 1 to 3,
/// and up to 8 for gradients, by a rule that follows from shapes and the processor. Everything else goes to LibTorch's
/// kernels. Results have the same bits on any number of threads. `library` registers at::DispatchKey::CPU for namespace
/// aten.
void add_convolution(torch::Library& library);

/// Registers vector code for pooling of float32 images on the CPU whose channels lie one after the other.
/// max_pool2d_with_indices, functional and into given memory, gives LibTorch's result bit for bit (vector_max_pool.h).
/// avg_pool2d and _adaptive_avg_pool2d are registered with their gradients; the latter is used if all windows have one
/// size (vector_average_pool.h). Other tensors go to LibTorch's kernels, which are vector code too for the
/// channels_last format. `library` registers at::DispatchKey::CPU for namespace aten.
void add_pooling(torch::Library& library);

/// Registers batch norm in training, `native_batch_norm` and `_native_batch_norm_legit`, for contiguous float32 tensors
/// [images, channels, ...] with at least 16 elements in each image and channel. LibTorch computes other tensors, and
/// all gradients. The saved mean and inverse standard deviation are rounded from float64, as LibTorch's are. Results do
/// not depend on the number of threads.
void add_normalization(torch::Library& library);

/// Returns true if our code for tanh is the faster one. MKL's is faster with AVX-512.
bool replaces_tanh();

/// Registers vector code (vector_activations.h) for float32 tensors on the CPU: tanh (if replaces_tanh()), sigmoid,
/// silu, gelu in both forms, and the gradients of the last two; functional, into given memory and in place. Tensors of
/// other dtypes, and tensors whose elements do not lie densely in memory, go to LibTorch's kernels. `library` registers
/// at::DispatchKey::CPU for namespace aten.
void add_activations(torch::Library& library);

}  // namespace phalanx::kernels
