// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/library.h>

namespace phalanx::kernels {

/// Registers vector code (vector_convolution.h) for two-dimensional convolutions, and their gradients, of float32
/// images on the CPU whose channels lie one after the other, with stride 1, one group and few channels of the input: 1
/// to 3, and for gradients up to 8, by a rule that follows from shapes and the processor. Everything else goes to
/// LibTorch's kernels. Results have the same bits on any number of threads. `library` is one of at::DispatchKey::CPU
/// for namespace aten.
void add_convolution(torch::Library& library);

}  // namespace phalanx::kernels
