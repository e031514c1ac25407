// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// A kind of device, other than the CPU, that ranks can compute on. Kinds register themselves under the name that a
/// config's `device` key uses.
class DeviceKind {
 public:
  virtual ~DeviceKind() = default;

  virtual c10::DeviceType type() const = 0;

  /// Says why no device of this kind can be used, and what to do: one line, empty if one can be used. Loads the
  /// libraries that devices need, but starts nothing, so ranks may be forked afterwards.
  virtual std::string missing() const = 0;

  /// Returns the number of devices that this process can use, at least one. Ranks may not be forked afterwards. Throws
  /// ConfigError.
  virtual int count() const = 0;

  /// Returns a group of the ranks of `host`, in their order, that takes tensors of their devices as well as CPU
  /// tensors. `own` is this rank's device; several ranks may have the same one, and the group is as fast as the kind
  /// allows then. Collective. Throws CommError.
  virtual CommunicatorPtr connect(CommunicatorPtr host, c10::Device own, Seconds timeout) const = 0;
};

using DeviceKinds = Registry<std::shared_ptr<const DeviceKind>()>;

/// Returns true if the backend itself connects devices of this type, as nccl does. Other worlds are connected by
/// DeviceKind::connect(), also if they take tensors of devices: MPI may, but NCCL is faster.
bool connects_devices(const std::string& backend, c10::DeviceType type);

}  // namespace phalanx
