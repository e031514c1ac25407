// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace phalanx::testing {

/// Registers LibTorch's kernels for attention on GPUs, which the CPU lacks. They refuse what these refuse: dtypes,
/// widths of heads, and memory that is not laid out as they read it. Without dropout and masks. Only flash attention
/// takes keys and values with fewer heads than queries.
void register_attention(torch::Library& library);

}  // namespace phalanx::testing
