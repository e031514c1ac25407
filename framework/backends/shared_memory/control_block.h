// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/channel.h"
#include "framework/backends/shared_memory/fabric.h"
#include "framework/comm/operations/call.h"

namespace phalanx::shared_memory {

inline constexpr std::size_t kScratchBytes = 256 << 10;  // per rank and half

/// The next operation of a rank and the location of its memory. All ranks compare the posts before any of them acts on
/// it.
struct Post {
  Call call;
  Location input, output;
};

enum class Presence : std::uint32_t {
  kPresent,
  kLeft,    // no longer takes part; its posts remain valid
  kFailed,  // gave up during the call `failed_in`; that post is void, earlier ones remain valid
};

/// A few bytes with their own sequence number. Readers fetch all lines at once while they wait, instead of one after
/// the other after a separate flag.
struct alignas(kLine) FlaggedLine {
  static constexpr std::size_t kBytes = kLine - sizeof(std::uint64_t);

  std::byte data[kBytes];
  std::atomic<std::uint64_t> sequence{0};  // sequence number of the call; stored last
};

/// The largest payload that a call can carry in flagged lines.
inline constexpr std::size_t kPayloadLines = 36;
inline constexpr std::size_t kPayloadBytes = kPayloadLines * FlaggedLine::kBytes;

/// A rank's place in shared memory. Only that rank writes to it; every other rank reads it.
///
/// Posts alternate between two lines. A rank posts call n + 2 only after all ranks have posted n + 1, which means that
/// all have finished reading n. So one barrier per operation is enough if the data fits into the scratch halves or the
/// payload lines, which alternate in the same way.
struct Member {
  struct alignas(kLine) Line {
    std::atomic<std::uint64_t> sequence{0};  // sequence number of the call, from 1; stored last
    Post post;
  };
  Line posts[2];
  // The number of barriers after the first of each operation, since the start.
  alignas(kLine) std::atomic<std::uint64_t> stage{0};
  alignas(kLine) std::atomic<Presence> presence{Presence::kPresent};
  std::atomic<std::uint64_t> failed_in{0};  // sequence of the call that this rank gave up; stored before kFailed
  std::atomic<std::uint32_t> gone{0};       // 1: the rank has destroyed its communicator, broken or not
  std::atomic<std::uint32_t> round{0};      // number of ballots at which this rank has arrived
  FlaggedLine payload[2][kPayloadLines];
  alignas(kLine) std::byte scratch[2][kScratchBytes];
};
static_assert(sizeof(Member::Line) == kLine && sizeof(FlaggedLine) == kLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// One attempt of the survivors to agree on their members (survivors.h).
struct Ballot {
  static constexpr std::uint32_t kOpen = 0;             // otherwise 1 + the rank that counts the votes
  static constexpr std::uint32_t kPublished = 1 << 30;  // the survivors and the location of their memory are set
  static constexpr std::uint32_t kCommitted = kPublished + 1;
  static constexpr std::uint32_t kAborted = kPublished + 2;

  alignas(kLine) std::atomic<std::uint32_t> state{kOpen};
  Fabric::Handle memory;  // memory of the new group's ControlBlock
};

/// The vote of a rank in a ballot.
struct Vote {
  std::atomic<std::uint32_t> survives{0};
  std::atomic<std::uint32_t> ready{0};  // the rank has opened the memory
};

/// All memory that the ranks of a group share, except the memory of their tensors: the members, then a channel from
/// each rank to each rank, then a ballot for each rank that might be lost, and its votes. Zeroed memory is a valid
/// initial state. Parts that are never used take no physical memory.
class ControlBlock {
 public:
  static std::size_t bytes(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return sizeof(Member) * ranks + (sizeof(Channel) + sizeof(Vote)) * ranks * ranks + sizeof(Ballot) * ranks;
  }

  ControlBlock(void* memory, int size)
      : members_(static_cast<Member*>(memory)),
        channels_(reinterpret_cast<Channel*>(members_ + size)),
        ballots_(reinterpret_cast<Ballot*>(channels_ + static_cast<std::ptrdiff_t>(size) * size)),
        votes_(reinterpret_cast<Vote*>(ballots_ + size)),
        size_(size) {}

  Member& member(int rank) const { return members_[rank]; }
  Channel& channel(int from, int to) const { return channels_[from * static_cast<std::ptrdiff_t>(size_) + to]; }
  Ballot& ballot(int round) const { return ballots_[round]; }
  Vote& vote(int round, int rank) const { return votes_[round * static_cast<std::ptrdiff_t>(size_) + rank]; }

 private:
  Member* members_;
  Channel* channels_;
  Ballot* ballots_;
  Vote* votes_;
  int size_;
};

}  // namespace phalanx::shared_memory
