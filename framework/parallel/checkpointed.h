// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "framework/parallel/host_copy.h"

namespace phalanx {

/// Computes `function(input)` and keeps only the input for backward, which computes the intermediate results again
/// (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174). That costs one more forward.
///
/// The second forward uses the same random numbers of LibTorch's default generator and the same autocast as the first,
/// so gradients are bitwise the same as in a plain call. `function` is called in the thread that runs backward. Objects
/// that it captures must live until then, and a side effect of it would happen twice, unless it asks recomputing(). If
/// the input needs no gradient, all intermediate results are kept. Use backward(), not torch::autograd::grad: gradients
/// of the parameters that `function` uses are added to their grad in an inner backward. A parameter that is also used
/// outside of `function` gets its gradient in two parts.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input);

/// As checkpointed(), but keeps the input, which is on a device, in memory of the host. `last` is the copy that the
/// call before made in the same forward, or null, and becomes the copy of this call. The copy runs next to `function`,
/// which must not change its input in place: throws std::logic_error if it does.
at::Tensor checkpointed_on_host(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input,
                                std::shared_ptr<HostCopy>& last);

/// Returns true while this thread computes a checkpointed function for the second time.
bool recomputing();

}  // namespace phalanx
