// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/location.h"
#include "framework/backends/shared_memory/payload_lines.h"

namespace phalanx::shared_memory {

/// The channel for messages from one rank to another: a ring of slots that the sender fills and the receiver empties,
/// each at its own pace. A message begins in a new slot, and takes as many slots as its bytes fill:
///
/// - up to kSmallBytes: the header of the slot and its lines
/// - more: a piece of up to ChannelData::kSlotBytes in each slot
/// - none but the header of the first slot, if it is larger than a piece and the receiver reaches the sender's memory
///   (region kEverywhere)
///
/// If the receiver can fetch from the sender (region kFetched), both claim parts of a message of several pieces: the
/// sender claims the next piece before it writes it, and a receiver that finds no more slots, because the sender is
/// busy with something else, claims what is left and fetches it.
struct Channel {
  static constexpr std::uint64_t kSlots = 64;

  struct alignas(kLine) Header {
    static constexpr std::size_t kHeadBytes = 24;

    std::int64_t bytes = 0;    // of the whole message; set in its first slot
    std::uint64_t offset = 0;  // of the piece in the message
    Location location;         // of the whole message; set in its first slot
    std::int32_t tag = 0;      // set in the first slot
    std::byte head[kHeadBytes];
    std::atomic<std::uint64_t> filled{0};  // number of the slot since the start, plus 1
  };
  static_assert(sizeof(Header) == kLine);

  /// The claimed part of the sender's last claimable message, packed into a word.
  struct Claim {
    static constexpr int kOffsetBits = 44;

    static std::uint64_t pack(std::uint64_t message, std::uint64_t offset) { return message << kOffsetBits | offset; }
    static std::uint64_t offset(std::uint64_t word) { return word & ((std::uint64_t{1} << kOffsetBits) - 1); }
    static bool is_of(std::uint64_t word, std::uint64_t message) {
      return word >> kOffsetBits == pack(message, 0) >> kOffsetBits;
    }
  };

  Header headers[kSlots];
  alignas(kLine) std::atomic<std::uint64_t> emptied{0};  // number of emptied slots; written by the receiver
  alignas(kLine) std::atomic<std::uint64_t> claimed{0};  // a Claim
  // The number of claimable messages that have arrived entirely; written by the receiver.
  alignas(kLine) std::atomic<std::uint64_t> received{0};
};

/// The largest message without pieces.
inline constexpr std::size_t kSmallBytes = 1 << 10;

/// The bytes of the slots of a channel, which are in pages of their own.
class ChannelData {
 public:
  static constexpr std::size_t kSlotBytes = 16 << 10;
  static constexpr std::size_t kLines = lines_of(kSmallBytes - Channel::Header::kHeadBytes);
  static constexpr std::size_t kBytes = Channel::kSlots * (kSlotBytes + kLines * sizeof(FlaggedLine));

  /// Returns the size of the pieces of a message. Smaller messages have smaller ones, so that both sides work.
  static constexpr std::size_t step_of(std::size_t bytes) { return bytes <= kSlotBytes ? kSlotBytes / 4 : kSlotBytes; }

  explicit ChannelData(std::byte* memory) : memory_(memory) {}

  std::byte* piece(std::uint64_t slot) const { return memory_ + slot % Channel::kSlots * kSlotBytes; }
  FlaggedLine* lines(std::uint64_t slot) const {
    auto* const first = reinterpret_cast<FlaggedLine*>(memory_ + Channel::kSlots * kSlotBytes);
    return first + slot % Channel::kSlots * kLines;
  }

 private:
  std::byte* memory_;
};

/// Claims the next `most` bytes of a message, or fewer at its end, for the sender or the receiver. Returns where they
/// begin; `bytes` if the whole message is claimed.
inline std::uint64_t claim(Channel& channel, std::uint64_t message, std::uint64_t bytes, std::uint64_t most) {
  auto word = channel.claimed.load(std::memory_order_relaxed);
  for (;;) {
    if (!Channel::Claim::is_of(word, message)) return bytes;
    const std::uint64_t begin = Channel::Claim::offset(word);
    if (begin >= bytes) return bytes;
    const std::uint64_t end = std::min(bytes, begin + most);
    if (channel.claimed.compare_exchange_weak(word, Channel::Claim::pack(message, end), std::memory_order_relaxed)) {
      return begin;
    }
  }
}

}  // namespace phalanx::shared_memory
