// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/group.h"

namespace phalanx::shared_memory {

/// One address per rank; empty if not all ranks can be reached.
using Addresses = c10::SmallVector<std::byte*, 16>;

/// Translates the memory of each rank in the current operation to addresses of this rank; empty if one of them cannot
/// be reached. All ranks get the same answer, reachable or not.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  virtual Location locate(const void* begin, std::size_t bytes) const = 0;
  virtual Addresses addresses(const Group& group,
                              Location Post::* which) const = 0;  // valid after Group::exchange_posts()
};

/// A dense run of elements.
struct Elements {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  c10::ScalarType dtype = c10::kFloat;

  std::size_t item() const { return c10::elementSize(dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(count) * item(); }
};

/// One rank's part in an operation, and the barriers at which it synchronizes with the other ranks.
struct Execution {
  Group& group;
  const AddressBook& book;
  const Call& call;

  int rank() const { return group.rank(); }
  int size() const { return group.size(); }

  /// Copies into this rank's scratch memory.
  void copy_in(std::byte* to, const std::byte* from, std::size_t bytes) const {
    group.scratch_writer().write(to, from, bytes);
  }

  /// The first barrier. An operation that is done at once posts no memory locations.
  void exchange_posts() const { group.exchange_posts({.call = call, .input = {}, .output = {}}); }
  void exchange_posts(const Elements& input, const Elements& output) const {
    group.exchange_posts({.call = call, .input = locate(input), .output = locate(output)});
  }

  /// The first barrier for an input that other ranks only copy from. They may fetch it, which takes one copy instead of
  /// two. It is not fetched if this rank's output can be reached, or if the operation touches more than the caches
  /// hold, because the kernel cannot bypass the caches.
  void exchange_posts_to_copy(const Elements& input, const Elements& output, std::size_t touched) const {
    Post mine{.call = call, .input = locate(input), .output = locate(output)};
    if (mine.input.region == 0 && mine.output.region == 0 && touched <= cache_bytes() / 2 && group.fabric().fetches()) {
      mine.input = {reinterpret_cast<std::uint64_t>(input.data), kFetched};
    }
    group.exchange_posts(mine);
  }
  bool input_is_fetched() const { return group.post_of(0).input.region == kFetched; }

  Addresses inputs() const { return book.addresses(group, &Post::input); }
  Addresses outputs() const { return book.addresses(group, &Post::output); }

  /// Moves data that is not in reachable memory, in `chunks` chunks. For each chunk, every rank calls fill(own, chunk)
  /// with its scratch memory, waits at a barrier, and calls drain(scratch_of, chunk), where scratch_of(rank) is the
  /// scratch memory that `rank` has filled. The two halves of the scratch memory alternate, so one barrier per chunk is
  /// enough, and one more at the end.
  template <class Fill, class Drain>
  void through_scratch(std::int64_t chunks, const Fill& fill, const Drain& drain) const {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int half = static_cast<int>(chunk % 2);
      fill(group.scratch(rank(), half), chunk);
      group.barrier();
      drain([&](int peer) { return group.scratch(peer, half); }, chunk);
    }
    if (chunks > 0) group.barrier();  // after this, owners may use their scratch again
  }

  /// Does the same for a single chunk without a second barrier, for small operations. `bytes` is the size of the
  /// scratch that each rank fills, or only `sender`.
  template <class Fill, class Drain>
  void in_one_step(std::size_t bytes, const Fill& fill, const Drain& drain, int sender = kAllRanks) const {
    if (bytes > kPayloadBytes) {
      fill(group.next_scratch(), 0);
      exchange_posts();
      drain([&](int peer) { return group.scratch(peer); }, 0);
      return;
    }
    std::byte* own = group.own_payload();
    fill(own, 0);
    exchange_payload({own, bytes}, drain, sender);
  }

  /// Does the same with the data in `own`, at most kPayloadBytes.
  template <class Drain>
  void exchange_payload(std::span<const std::byte> own, const Drain& drain, int sender = kAllRanks) const {
    const bool sends = sender == kAllRanks || sender == rank();
    group.exchange_posts({.call = call, .input = {}, .output = {}}, own.first(sends ? own.size() : 0), own.size(),
                         sender);
    drain([&](int peer) { return peer == rank() ? own.data() : group.payload_of(peer); }, 0);
  }
  static constexpr int kAllRanks = -1;

  Location locate(const Elements& elements) const {
    return elements.data == nullptr ? Location{} : book.locate(elements.data, elements.bytes());
  }
};

/// Operations that move at most this many bytes through any rank's scratch do it at once.
inline constexpr std::size_t kOneStepBytes = 8 << 10;

/// Chunk `index` of a run of bytes that is cut every `step` bytes; empty after the end of the run.
struct ChunkRange {
  std::size_t begin = 0, bytes = 0;

  ChunkRange(std::size_t whole, std::int64_t index, std::size_t step)
      : begin(std::min(whole, static_cast<std::size_t>(index) * step)), bytes(std::min(step, whole - begin)) {}
};

inline std::int64_t chunks_of(std::size_t bytes, std::size_t step) {
  return static_cast<std::int64_t>((bytes + step - 1) / step);
}

/// Returns how many of `bytes` bytes a rank puts into its scratch at a time. The step is small enough that one rank
/// copies in while another copies out the previous chunk, and that both find the data in their caches.
inline std::size_t step_of(std::size_t bytes) {
  constexpr std::size_t kLeast = 16 << 10, kMost = 128 << 10;
  return std::clamp((bytes / 4 + kLine - 1) / kLine * kLine, kLeast, kMost);
}

/// Returns the bytes of one share if each of `ranks` gets a share of the scratch.
inline std::size_t share_of(std::size_t bytes, int ranks) {
  return std::max(kLine, step_of(bytes) / static_cast<std::size_t>(ranks) / kLine * kLine);
}

/// Returns the bytes of one share in an operation that is done at once.
inline std::size_t small_share_of(std::size_t part) { return (part + 7) / 8 * 8; }

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace phalanx::shared_memory
