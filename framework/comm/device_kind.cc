// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/device_kind.h"

#include "framework/comm/backend.h"

namespace phalanx {

bool connects_devices(const std::string& backend, c10::DeviceType type) {
  const std::string device = backend_traits(backend).device;
  return device != "cpu" && DeviceKinds::Choice(device).make()->type() == type;
}

}  // namespace phalanx
