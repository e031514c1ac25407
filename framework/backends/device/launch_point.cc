// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/launch_point.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace phalanx {

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

LaunchPoint::LaunchPoint(const at::Tensor& tensor) : device_(tensor.device()) {
  if (device_.is_cpu()) return;
  event_ = std::make_shared<c10::Event>(device_.type());
  event_->record(current_stream(device_));
}

void LaunchPoint::precede_current_stream() const {
  if (event_) event_->block(current_stream(device_));
}

}  // namespace phalanx
