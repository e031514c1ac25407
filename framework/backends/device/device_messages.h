// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Messages between the devices of the ranks of a group, which do not go through the memory of hosts. A plug-in
/// implements it. Thread-safe.
class DeviceMessages {
 public:
  virtual ~DeviceMessages() = default;

  /// Launches a send or a receive, of a tensor on this rank's device, whose other end is another rank. It keeps the
  /// promises of Communicator::send() and recv(): messages of one sender, receiver and tag arrive in order, those with
  /// different tags may be received in any order, and a wrong size is a mismatch at the receiver. Both ends must use
  /// tensors of devices.
  virtual Work launch(Operation operation) = 0;
};

/// Makes the messages of the ranks of `host`, which carries what they must tell each other. Not collective.
using MakeDeviceMessages = std::function<std::shared_ptr<DeviceMessages>(const CommunicatorPtr& host)>;

}  // namespace phalanx
