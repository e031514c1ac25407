// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/channel.h"
#include "framework/backends/shared_memory/fabric.h"
#include "framework/backends/shared_memory/payload_lines.h"
#include "framework/backends/shared_memory/ring.h"
#include "framework/comm/operations/call.h"

namespace phalanx::shared_memory {

/// The call of a rank, and either the locations of its memory or the first bytes of its payload, the head; the call
/// decides which. Ranks compare the posts of those whose data they use before they use it, and the others' later.
struct Post {
  Call call;
  Location input, output;

  static constexpr std::size_t kHeadBytes = 2 * sizeof(Location);
  std::byte* head() { return reinterpret_cast<std::byte*>(this) + offsetof(Post, input); }
  const std::byte* head() const { return reinterpret_cast<const std::byte*>(this) + offsetof(Post, input); }
};
static_assert(offsetof(Post, output) == offsetof(Post, input) + sizeof(Location));

enum class Presence : std::uint32_t {
  kPresent,
  kLeft,    // no longer takes part; its posts remain valid
  kFailed,  // gave up during the call `failed_in`; that post is void, earlier ones remain valid
};

/// The number of operations by which a rank may be ahead of the slowest one. Not every operation waits for all ranks: a
/// root that only sends goes on at once, and so does a rank that only sends to the root.
inline constexpr std::uint64_t kLead = 3;

/// Posts rotate through this many lines. A rank posts call n only after all ranks have posted n - kLead, and compares
/// their calls up to n - kLead before that. So a rank that overwrites its post n - kPosts by n knows that every rank
/// has posted n - kLead, and therefore has compared the calls up to n - 2 kLead.
inline constexpr std::uint64_t kPosts = 8;
static_assert(kPosts >= 2 * kLead);

/// Payloads rotate through this many places. A rank that has posted n - kLead has read all payloads before that.
inline constexpr std::uint64_t kPayloads = 4;
static_assert(kPayloads > kLead);

/// The largest payload that a call can carry: its first bytes in the post, the rest in flagged lines.
inline constexpr std::size_t kPayloadBytes = 1 << 10;
inline constexpr std::size_t kPayloadLines = lines_of(kPayloadBytes - Post::kHeadBytes);

/// The scratch memory of a rank, for operations that combine in shared memory.
inline constexpr std::size_t kScratchBytes = 256 << 10;

/// A rank's place in shared memory. Only that rank writes to it; every other rank reads it.
struct Member {
  struct alignas(kLine) Line {
    Post post;
    std::atomic<std::uint64_t> sequence{0};  // sequence number of the call, from 1; stored last
  };
  Line posts[kPosts];
  // Sequence number of the last operation in which the rank needs no memory of others any more; set only in those that
  // use memory of others in place.
  alignas(kLine) std::atomic<std::uint64_t> finished{0};
  alignas(kLine) std::atomic<Presence> presence{Presence::kPresent};
  std::atomic<std::uint64_t> failed_in{0};  // sequence of the call that this rank gave up; stored before kFailed
  std::atomic<std::uint32_t> gone{0};       // 1: the rank has destroyed its communicator, broken or not
  std::atomic<std::uint32_t> round{0};      // number of ballots at which this rank has arrived
  Progress filled;                          // pieces in the rank's ring
  alignas(kLine) std::atomic<std::uint64_t> stage{0};  // number of barrier() calls since the start
  alignas(kLine) std::uint64_t begins[kPosts];  // first pieces in the ring of the calls whose posts do not say it
  FlaggedLine payload[kPayloads][kPayloadLines];
};
static_assert(sizeof(Member::Line) == kLine);
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

/// All memory that the ranks of a group share, except the memory of their tensors: the members; for each pair of ranks,
/// how far one has read the other's ring, and a channel; a ballot for each rank that might be lost, and its votes; and
/// last, in pages of their own, the data of the rings and channels, and the scratch memory. Zeroed memory is a valid
/// initial state. Parts that are never used take no physical memory.
class ControlBlock {
 public:
  static std::size_t bytes(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return data_at(size) + (kRingBytes + kScratchBytes) * ranks + ChannelData::kBytes * ranks * ranks;
  }

  /// `memory` is aligned to a page.
  ControlBlock(void* memory, int size)
      : members_(static_cast<Member*>(memory)),
        taken_(reinterpret_cast<Progress*>(members_ + size)),
        channels_(reinterpret_cast<Channel*>(taken_ + square(size))),
        ballots_(reinterpret_cast<Ballot*>(channels_ + square(size))),
        votes_(reinterpret_cast<Vote*>(ballots_ + size)),
        data_(static_cast<std::byte*>(memory) + data_at(size)),
        size_(size) {}

  Member& member(int rank) const { return members_[rank]; }
  Channel& channel(int from, int to) const { return channels_[pair(from, to)]; }
  Ballot& ballot(int round) const { return ballots_[round]; }
  Vote& vote(int round, int rank) const { return votes_[pair(round, rank)]; }

  /// Returns the numbers of pieces of `writer`'s ring that each rank needs no longer.
  Progress* taken(int writer) const { return taken_ + pair(writer, 0); }
  std::byte* ring_data(int rank) const { return data_ + kRingBytes * static_cast<std::size_t>(rank); }
  std::byte* scratch(int rank) const { return ring_data(size_) + kScratchBytes * static_cast<std::size_t>(rank); }
  ChannelData channel_data(int from, int to) const {
    return ChannelData(scratch(size_) + ChannelData::kBytes * static_cast<std::size_t>(pair(from, to)));
  }

 private:
  static std::ptrdiff_t square(int size) { return static_cast<std::ptrdiff_t>(size) * size; }
  std::ptrdiff_t pair(int first, int second) const { return first * static_cast<std::ptrdiff_t>(size_) + second; }

  static std::size_t data_at(int size) {
    constexpr std::size_t kPage = 4096;
    const auto ranks = static_cast<std::size_t>(size);
    const std::size_t heads = sizeof(Member) * ranks +
                              (sizeof(Progress) + sizeof(Channel) + sizeof(Vote)) * ranks * ranks +
                              sizeof(Ballot) * ranks;
    return (heads + kPage - 1) / kPage * kPage;
  }

  Member* members_;
  Progress* taken_;
  Channel* channels_;
  Ballot* ballots_;
  Vote* votes_;
  std::byte* data_;
  int size_;
};

}  // namespace phalanx::shared_memory
