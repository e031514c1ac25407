// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Returns the state of LibTorch's default generator of a device, as a copy of its bytes on the CPU. Random tensors of
/// that device, such as for dropout, are drawn from it. Initial values of parameters are drawn from the CPU's
/// generator. Threads of a process share the generator of a device, and any of them may call both functions.
at::Tensor random_state(const c10::Device& device = c10::kCPU);

/// Sets the state, so that the generator repeats the numbers that it drew after `state` was taken. The state must be
/// from the same kind of device.
void set_random_state(const at::Tensor& state, const c10::Device& device = c10::kCPU);

}  // namespace phalanx
