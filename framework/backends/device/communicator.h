#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/comm/decorator.h"

namespace phalanx {

/// Makes a group take tensors of a device, too. Those of the CPU stay with `host`.
///
/// Of the device's, what `native` can is launched there, on a stream of its own; everything else, and all of it where
/// `native` is null, goes through the host's memory (staging.h). So every operation works on both kinds of tensors, in
/// every dtype, and messages and barriers are always the host's.
///
/// With `native`, run() blocks until the body has run: operations of a device come in the order of their launch, and
/// that must be the same on all ranks.
class DeviceCommunicator final : public Decorator {
 public:
  /// Operations that a native backend has.
  using Can = std::function<bool(const Operation&)>;

  struct Native {
    CommunicatorPtr group;  // of the same ranks in the same order; null: there is none
    Can can;
  };

  static constexpr std::int64_t kChunkBytes = 4 << 20;

  DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device, Native native = {},
                     std::int64_t chunk_bytes = kChunkBytes);

  bool takes(c10::DeviceType device) const override { return device == device_ || inner()->takes(device); }
  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr shrink() override;
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  Work launch_staged(Operation operation);

  c10::DeviceType device_;
  Native native_;
  std::int64_t chunk_bytes_;
};

}  // namespace phalanx
