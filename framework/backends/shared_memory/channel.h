// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

/// The way of messages from one rank to another: a ring of slots that the sender fills and the receiver empties, each
/// at its own pace. A message begins with a slot of its own, which says what it is, and takes as many as its bytes
/// fill; one that the receiver reaches where it lies takes a single slot, with no bytes in it.
struct Channel {
  static constexpr std::uint64_t kSlots = 8;
  static constexpr std::size_t kSlotBytes = 16 << 10;

  struct alignas(kLine) Header {
    std::int64_t bytes = 0;
    std::int32_t tag = 0;
    Location location;  // region 0: the bytes follow in slots
  };

  alignas(kLine) std::atomic<std::uint64_t> filled{0};   // slots, over all time; the sender's
  alignas(kLine) std::atomic<std::uint64_t> emptied{0};  // the receiver's
  Header headers[kSlots];                                // where a message begins
  alignas(kLine) std::byte data[kSlots][kSlotBytes];
};

}  // namespace phalanx::shared_memory
