#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// The state of LibTorch's default generator of the CPU, from which initial values and dropout are drawn: a copy, of
/// bytes. Threads of a process share the generator, and both functions may be called by any of them.
at::Tensor random_state();

/// From now on the generator draws what it drew after `state` was taken.
void set_random_state(const at::Tensor& state);

}  // namespace phalanx
