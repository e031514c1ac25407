// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/channel.h"
#include "framework/backends/shared_memory/fabric.h"
#include "framework/comm/call.h"

namespace phalanx::shared_memory {

inline constexpr std::size_t kScratchBytes = 256 << 10;  // per rank and half

/// What a rank is about to do: compared by all ranks before any of them acts on it; and where its memory lies.
struct Post {
  Call call;
  Location input, output;
};

enum class Presence : std::uint32_t {
  kHere,
  kLeft,    // takes no part any more; what it posted stands
  kFailed,  // gave up in the middle of the call `failed_in`; that post is void, those before it stand
};

/// A few bytes that say for themselves whether they have come, so that those who wait for them fetch them while they
/// wait, all at once, and not after a flag.
struct alignas(kLine) FlaggedLine {
  static constexpr std::size_t kBytes = kLine - sizeof(std::uint64_t);

  std::byte data[kBytes];
  std::atomic<std::uint64_t> sequence{0};  // of the call, stored last
};

/// What a call can bring along in flagged lines.
inline constexpr std::size_t kPayloadLines = 36;
inline constexpr std::size_t kPayloadBytes = kPayloadLines * FlaggedLine::kBytes;

/// A rank's place in shared memory. Written by that rank alone; every other rank reads it.
///
/// Posts alternate between two lines. A rank posts call n + 2 only when all have posted n + 1, so when all are done
/// with reading n: one meeting per operation is enough for what fits into the scratch halves or the payload lines,
/// which alternate alike.
struct Member {
  struct alignas(kLine) Line {
    std::atomic<std::uint64_t> sequence{0};  // of the call, from 1; stored last
    Post post;
  };
  Line posts[2];
  alignas(kLine) std::atomic<std::uint64_t> stage{0};  // meetings after the first of each operation, over all time
  alignas(kLine) std::atomic<Presence> presence{Presence::kHere};
  std::atomic<std::uint64_t> failed_in{0};  // sequence of the call that this rank gave up; before kFailed is stored
  std::atomic<std::uint32_t> gone{0};       // 1: has destroyed its communicator, broken or not
  std::atomic<std::uint32_t> round{0};      // how many ballots of survivors it has come to
  FlaggedLine payload[2][kPayloadLines];
  alignas(kLine) std::byte scratch[2][kScratchBytes];
};
static_assert(sizeof(Member::Line) == kLine && sizeof(FlaggedLine) == kLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// One attempt of survivors to agree on who they are (survivors.h).
struct Ballot {
  static constexpr std::uint32_t kOpen = 0;             // then 1 + the rank that counts
  static constexpr std::uint32_t kPublished = 1 << 30;  // who survives, and where their memory is
  static constexpr std::uint32_t kCommitted = kPublished + 1;
  static constexpr std::uint32_t kAborted = kPublished + 2;

  alignas(kLine) std::atomic<std::uint32_t> state{kOpen};
  Fabric::Handle memory;  // of the new group's ControlBlock
};

/// A rank's line in a ballot.
struct Voice {
  std::atomic<std::uint32_t> survives{0};
  std::atomic<std::uint32_t> ready{0};  // has opened the memory
};

/// All that the ranks of a group share besides the memory of their tensors: their members side by side, then a channel
/// from each to each, then a ballot for each rank that might be lost, with their voices. Zeroed memory is a valid
/// start; what is never used takes no physical memory.
class ControlBlock {
 public:
  static std::size_t bytes(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return sizeof(Member) * ranks + (sizeof(Channel) + sizeof(Voice)) * ranks * ranks + sizeof(Ballot) * ranks;
  }

  ControlBlock(void* memory, int size)
      : members_(static_cast<Member*>(memory)),
        channels_(reinterpret_cast<Channel*>(members_ + size)),
        ballots_(reinterpret_cast<Ballot*>(channels_ + static_cast<std::ptrdiff_t>(size) * size)),
        voices_(reinterpret_cast<Voice*>(ballots_ + size)),
        size_(size) {}

  Member& member(int rank) const { return members_[rank]; }
  Channel& channel(int from, int to) const { return channels_[from * static_cast<std::ptrdiff_t>(size_) + to]; }
  Ballot& ballot(int round) const { return ballots_[round]; }
  Voice& voice(int round, int rank) const { return voices_[round * static_cast<std::ptrdiff_t>(size_) + rank]; }

 private:
  Member* members_;
  Channel* channels_;
  Ballot* ballots_;
  Voice* voices_;
  int size_;
};

}  // namespace phalanx::shared_memory
