// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace phalanx {

/// `function(input)`, of whose intermediate results only the input is kept: backward computes the rest again (Chen et
/// al. 2016, Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174). That costs one more forward.
///
/// The second forward has the random numbers of LibTorch's default generator and the autocast that the first had, so
/// gradients are bitwise those of a plain call. `function` is called in the thread that runs backward; what it captures
/// must live until then, and what it changes beside its result would change twice, unless it asks recomputing(). An
/// input that needs no gradient is kept like all else. Backward, not torch::autograd::grad: gradients of the parameters
/// that `function` uses are added to their grad in an inner backward; one that is used outside of it too gets its
/// gradient in two parts.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input);

/// Whether this thread computes a checkpointed function for the second time.
bool recomputing();

}  // namespace phalanx
