// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/native_paths.h"

#include <memory>
#include <utility>

#include "framework/backends/nccl/native.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/base/cuda.h"

namespace phalanx::nccl {

DeviceCommunicator::Native native_paths(CommunicatorPtr group, int device, Seconds timeout) {
  if (!group) return {.group = nullptr, .supports = &has_native};
  const auto connect = Cuda::global().function<ConnectMessages>("phalanx_nccl_messages");
  return {.group = std::move(group),
          .supports = &has_native,
          .messages = [connect, device, timeout](const CommunicatorPtr& host) {
            std::shared_ptr<DeviceMessages> made;
            connect({.host = host, .device = device, .timeout = timeout}, made);
            return made;
          }};
}

}  // namespace phalanx::nccl
