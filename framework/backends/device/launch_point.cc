// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/launch_point.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace phalanx {

namespace {

// LibTorch makes the event's device the current one to free an event, and then the one that was current before, of
// which it thereby opens a context. So the thread that happens to free the event must be on its device already.
auto free_on(const c10::Device& device) {
  return [device](c10::Event* event) {
    const c10::impl::VirtualGuardImpl devices(device.type());
    c10::Device before = device;
    try {
      before = devices.exchangeDevice(device);
    } catch (const c10::Error&) {  // from CUDA, after a failed kernel
    }
    delete event;
    devices.uncheckedSetDevice(before);
  };
}

}  // namespace

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

LaunchPoint::LaunchPoint(const at::Tensor& tensor) : device_(tensor.device()) {
  if (device_.is_cpu()) return;
  event_ = std::shared_ptr<c10::Event>(new c10::Event(device_.type()), free_on(device_));
  event_->record(current_stream(device_));
}

void LaunchPoint::precede_current_stream() const {
  if (event_) event_->block(current_stream(device_));
}

}  // namespace phalanx
