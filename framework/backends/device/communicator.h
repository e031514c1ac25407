// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "framework/backends/device/peer_group.h"
#include "framework/comm/decorator.h"

namespace phalanx {

/// Makes a group take tensors of a device, too. Those of the CPU stay with `host`.
///
/// Of the device's, what a native group can is launched there, on a stream of its own. What `peers` can goes from
/// device memory to device memory, what the host's group can do on device memory itself it does there, and everything
/// else goes through the host's memory (staging.h); all of these block whoever waits. So every operation works on both
/// kinds of tensors, in every dtype, and messages and barriers are always the host's.
///
/// A body of run() has the stream of whoever launched it, on every thread, if there is such a device. With a native
/// group, run() blocks until the body has run: operations of a device come in the order of their launch, and that must
/// be the same on all ranks.
class DeviceCommunicator final : public Decorator {
 public:
  using Can = std::function<bool(const Operation&)>;

  struct Native {
    CommunicatorPtr group;  // of the same ranks in the same order; null: there is none
    Can can;
  };

  static constexpr std::int64_t kChunkBytes = 4 << 20;

  struct Ways {
    Native native{};
    std::shared_ptr<PeerGroup> peers{};      // of ranks that are all on one host; null: there is no memory in common
    Can direct{};                            // what `host` does on device memory; null: nothing
    std::int64_t chunk_bytes = kChunkBytes;  // of what goes through the host's memory
  };

  DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device)
      : DeviceCommunicator(std::move(host), device, Ways()) {}
  DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device, Ways ways)
      : Decorator(std::move(host)), device_(device), ways_(std::move(ways)) {}

  bool takes(c10::DeviceType device) const override { return device == device_ || inner()->takes(device); }
  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr shrink() override;
  bool shares_memory() const override;  // of the device
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  Work launch_blocking(Operation operation);
  Work run_in_turn(const Call& call, std::function<void()> body);
  Ways of_child() const;  // without the native group

  c10::DeviceType device_;
  Ways ways_;
};

}  // namespace phalanx
