// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <functional>
#include <memory>

namespace phalanx {

/// Work of a device that is recorded once and then replayed any number of times. The recorded kernels contain the
/// addresses of their tensors; memory that is allocated while recording belongs to the graph as long as it lives.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// From now on, records what this thread puts on the current stream, instead of executing it. The stream must not be
  /// the default one. Until capture_end(), this thread must not do what waits for the device. Throws c10::Error.
  virtual void capture_begin() = 0;

  /// Ends the recording. Throws c10::Error if the recording has failed; it has ended in that case, too.
  virtual void capture_end() = 0;

  /// Puts the recorded work on the current stream. Throws CommError if the graph has operations of a group that is
  /// broken; ranks that do not replay it, or do not launch the same operations, break the group after its timeout.
  virtual void replay() = 0;
};

using MakeDeviceGraph = std::function<std::unique_ptr<DeviceGraph>()>;

/// Sets how graphs of a type of device are made. Thread-safe.
void set_device_graphs(c10::DeviceType type, MakeDeviceGraph make);

/// Returns a new graph, or null if devices of this type cannot record any. Thread-safe.
std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType type);

}  // namespace phalanx
