// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Makes LibTorch use Phalanx's CPU kernels (convolutions, pooling, normalization, activations) for the whole process,
/// where they are faster on this processor. Without this call, the library leaves LibTorch's kernels as they are. Must
/// be called before the first operator and before other threads use LibTorch. Further calls do nothing. Returns what
/// differs from LibTorch, such as "vectors", or "libtorch" if nothing does.
std::string use_kernels();

}  // namespace phalanx
