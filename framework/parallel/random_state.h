// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// The state of LibTorch's default generator of a device, from which tensors of that device are drawn, such as
/// dropout's: a copy, of bytes, on the CPU. Initial values are drawn from that of the CPU. Threads of a process share a
/// device's generator, and both functions may be called by any of them.
at::Tensor random_state(const c10::Device& device = c10::kCPU);

/// From now on the generator draws what it drew after `state` was taken. The state must be of that kind of device.
void set_random_state(const at::Tensor& state, const c10::Device& device = c10::kCPU);

}  // namespace phalanx
