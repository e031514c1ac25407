// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

/// The channel for messages from one rank to another: a ring of slots that the sender fills and the receiver empties,
/// each at its own pace. A message begins in a new slot with a header, and takes as many slots as its bytes fill. A
/// message that the receiver reads directly from the sender's memory takes a single slot without bytes.
struct Channel {
  static constexpr std::uint64_t kSlots = 8;
  static constexpr std::size_t kSlotBytes = 16 << 10;

  struct alignas(kLine) Header {
    std::int64_t bytes = 0;
    std::int32_t tag = 0;
    Location location;  // region 0: the bytes follow in slots
  };

  // The number of slots filled since the start; written by the sender.
  alignas(kLine) std::atomic<std::uint64_t> filled{0};
  alignas(kLine) std::atomic<std::uint64_t> emptied{0};  // the same for emptied slots; written by the receiver
  Header headers[kSlots];                                // of the slots in which a message begins
};

/// The bytes of the slots of a channel, which are apart from it.
inline constexpr std::size_t kChannelBytes = Channel::kSlots * Channel::kSlotBytes;

}  // namespace phalanx::shared_memory
