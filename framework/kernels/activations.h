// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Returns true if ours is the faster code for tanh: MKL's with AVX-512 is faster.
bool replaces_tanh();

/// Registers vector code (vector_activations.h) for float32 tensors on the CPU: tanh (if replaces_tanh()), sigmoid,
/// silu, gelu in both forms, and the gradients of the last two; functional, into given memory and in place. Tensors of
/// other dtypes, and those whose elements do not lie densely in memory, go to LibTorch's kernels. `library` is one of
/// at::DispatchKey::CPU for namespace aten.
void add_activations(torch::Library& library);

}  // namespace phalanx::kernels
