// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "framework/backends/device/device_messages.h"
#include "framework/backends/device/peer_group.h"
#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator that also supports tensors on a device. Operations on CPU tensors are passed on to `host`.
///
/// For device tensors there are four paths, tried in this order. Operations that the native group supports are launched
/// on that group, which has its own stream. Operations that `peers` supports copy from device memory to device memory.
/// Operations that the host's group can perform on device memory itself run there: those of `direct`, or all if it
/// takes such tensors. All others go through host memory (staging.h). Except for the native group, all of these block
/// the thread that waits. So every operation supports both kinds of tensors in every dtype. Barriers always use the
/// host's group, and so do messages unless there are `messages` of the native group; a rank's messages to itself go
/// through host memory.
///
/// A group of one rank copies within the device, on the current stream.
///
/// A body of run() uses the current stream of the thread that launched it, on whichever thread it runs, if there is
/// such a device. With a native group, run() blocks until the body has run: operations of a device execute in the order
/// of their launch, which must be the same on all ranks.
class DeviceCommunicator final : public Decorator {
 public:
  using Predicate = std::function<bool(const Operation&)>;

  struct Native {
    CommunicatorPtr group;  // the same ranks in the same order; null if there is none
    Predicate supports;
    MakeDeviceMessages messages{};  // null: messages go through host memory; not called without a group
  };

  static constexpr std::int64_t kChunkBytes = 4 << 20;

  struct Paths {
    Native native{};
    // Only if all ranks are on one host; null: the ranks share no device memory.
    std::shared_ptr<PeerGroup> peers{};
    Predicate direct{};                      // operations that `host` performs on device memory; null: none
    std::int64_t chunk_bytes = kChunkBytes;  // of operations that go through host memory
  };

  DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device)
      : DeviceCommunicator(std::move(host), device, Paths()) {}
  DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device, Paths paths)
      : Decorator(std::move(host)), device_(device), paths_(std::move(paths)) {
    const Native& native = paths_.native;
    if (native.group && native.messages) messages_ = native.messages(inner());
  }

  bool takes(c10::DeviceType device) const override { return device == device_ || inner()->takes(device); }
  bool in_graphs(c10::DeviceType device) const override;  // true with a native group
  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  std::string why_no_shrink() const override;
  bool shares_memory() const override;  // true if the ranks share memory of the device
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  Work launch_alone(Operation operation);
  Work launch_blocking(Operation operation);
  Work run_in_turn(const Call& call, std::function<void()> body);
  Paths for_child() const;  // the paths of a child, without a native group

  c10::DeviceType device_;
  Paths paths_;
  std::shared_ptr<DeviceMessages> messages_;
};

}  // namespace phalanx
