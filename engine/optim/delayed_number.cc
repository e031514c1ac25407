// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/delayed_number.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace phalanx {

void DelayedNumber::request(const at::Tensor& number) {
  const c10::Device device = number.device();
  if (!copy_.defined()) copy_ = at::empty({}, at::device(at::kCPU).dtype(at::kFloat).pinned_memory(true));
  copy_.copy_(number, /*non_blocking=*/true);
  arrived_ = std::make_unique<c10::Event>(device.type());
  arrived_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

std::optional<double> DelayedNumber::read() {
  if (!arrived_) return std::nullopt;
  if (!arrived_->query()) arrived_->synchronize();
  return copy_.item<float>();
}

}  // namespace phalanx
