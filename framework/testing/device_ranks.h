// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <functional>

#include "framework/comm/device_kind.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {

/// Calls `body` in a thread for each rank of a world of backend inproc. The thread has a device of kind "cuda" of its
/// own, unless there are more ranks than devices, and a stream that is not the default one, as in a run.
inline void run_with_devices(int ranks,
                             const std::function<void(const CommunicatorPtr& world, c10::Device device)>& body) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const auto kind = DeviceKinds::Choice("cuda").make();
    const c10::Device device(kind->type(), static_cast<c10::DeviceIndex>(world->rank() % kind->count()));
    const c10::impl::VirtualGuardImpl devices(kind->type());
    devices.setDevice(device);
    const c10::StreamGuard stream(devices.getStreamFromGlobalPool(device));
    body(world, device);
  });
}

}  // namespace phalanx::testing
