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

/// An address for each rank; empty: not all can be reached.
using Addresses = c10::SmallVector<std::byte*, 16>;

/// Tells where each rank's memory of the current operation lies, in this rank's address space; empty if one of them
/// cannot be reached from here. All ranks get the same answer, reachable or not.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  virtual Location locate(const void* begin, std::size_t bytes) const = 0;
  virtual Addresses addresses(const Group& group, Location Post::* which) const = 0;  // after Group::meet()
};

/// A dense run of elements.
struct Elements {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  c10::ScalarType dtype = c10::kFloat;

  std::size_t item() const { return c10::elementSize(dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(count) * item(); }
};

/// One rank doing an operation: how it meets the others that do it.
struct Execution {
  Group& group;
  const AddressBook& book;
  const Call& call;

  int rank() const { return group.rank(); }
  int size() const { return group.size(); }

  /// Into this rank's scratch.
  void copy_in(std::byte* to, const std::byte* from, std::size_t bytes) const {
    group.scratch_writer().write(to, from, bytes);
  }

  /// The first meeting. An operation that is done at once says nothing of where its memory lies.
  void meet() const { group.meet({.call = call, .input = {}, .output = {}}); }
  void meet(const Elements& input, const Elements& output) const {
    group.meet({.call = call, .input = locate(input), .output = locate(output)});
  }

  /// The same for an input that others copy from and do nothing else with. They may fetch it, which takes one copy
  /// instead of two, unless this rank's output is one that they reach, or the operation touches more than the caches
  /// hold: the kernel cannot write past them.
  void meet_to_copy(const Elements& input, const Elements& output, std::size_t touched) const {
    Post mine{.call = call, .input = locate(input), .output = locate(output)};
    if (mine.input.region == 0 && mine.output.region == 0 && touched <= cache_bytes() / 2 && group.fabric().fetches()) {
      mine.input = {reinterpret_cast<std::uint64_t>(input.data), kFetched};
    }
    group.meet(mine);
  }
  bool input_is_fetched() const { return group.post_of(0).input.region == kFetched; }

  Addresses inputs() const { return book.addresses(group, &Post::input); }
  Addresses outputs() const { return book.addresses(group, &Post::output); }

  /// Moves what does not lie in reachable memory, in `chunks` chunks. In each, every rank calls fill(own, chunk), with
  /// its scratch, meets the others, and calls drain(scratch_of, chunk), where scratch_of(rank) is what each has filled.
  /// Halves of the scratch take turns, so one meeting a chunk is enough, and one more at the end.
  template <class Fill, class Drain>
  void through_scratch(std::int64_t chunks, const Fill& fill, const Drain& drain) const {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int half = static_cast<int>(chunk % 2);
      fill(group.scratch(rank(), half), chunk);
      group.meet_again();
      drain([&](int peer) { return group.scratch(peer, half); }, chunk);
    }
    if (chunks > 0) group.meet_again();  // the scratch is its owner's again
  }

  /// The same for a single chunk, with no meeting but the first: for small operations. `bytes`: of the scratch that
  /// each rank fills, or `sender` alone.
  template <class Fill, class Drain>
  void at_once(std::size_t bytes, const Fill& fill, const Drain& drain, int sender = kEverybody) const {
    if (bytes > kPayloadBytes) {
      fill(group.next_scratch(), 0);
      meet();
      drain([&](int peer) { return group.scratch(peer); }, 0);
      return;
    }
    std::byte* own = group.own_payload();
    fill(own, 0);
    bring_along({own, bytes}, drain, sender);
  }

  /// The same with what `own` holds, of at most kPayloadBytes.
  template <class Drain>
  void bring_along(std::span<const std::byte> own, const Drain& drain, int sender = kEverybody) const {
    const bool sends = sender == kEverybody || sender == rank();
    group.meet({.call = call, .input = {}, .output = {}}, own.first(sends ? own.size() : 0), own.size(), sender);
    drain([&](int peer) { return peer == rank() ? own.data() : group.payload_of(peer); }, 0);
  }
  static constexpr int kEverybody = -1;

  Location locate(const Elements& elements) const {
    return elements.data == nullptr ? Location{} : book.locate(elements.data, elements.bytes());
  }
};

/// Operations that move no more bytes than this through any rank's scratch do it at once.
inline constexpr std::size_t kAtOnceBytes = 8 << 10;

/// Chunk `index` of a run of `bytes`, cut every `step` bytes; empty where the run has ended.
struct ChunkRange {
  std::size_t begin = 0, bytes = 0;

  ChunkRange(std::size_t whole, std::int64_t index, std::size_t step)
      : begin(std::min(whole, static_cast<std::size_t>(index) * step)), bytes(std::min(step, whole - begin)) {}
};

inline std::int64_t chunks_of(std::size_t bytes, std::size_t step) {
  return static_cast<std::int64_t>((bytes + step - 1) / step);
}

/// How many bytes of `bytes` a rank puts into its scratch at a time: few enough that one rank copies in while another
/// copies out what was there before, and that both find it in their caches.
inline std::size_t step_of(std::size_t bytes) {
  constexpr std::size_t kLeast = 16 << 10, kMost = 128 << 10;
  return std::clamp((bytes / 4 + kLine - 1) / kLine * kLine, kLeast, kMost);
}

/// The same where each of `ranks` gets a share of the scratch: bytes of one share.
inline std::size_t share_of(std::size_t bytes, int ranks) {
  return std::max(kLine, step_of(bytes) / static_cast<std::size_t>(ranks) / kLine * kLine);
}

/// The same of an operation that is done at once.
inline std::size_t small_share_of(std::size_t part) { return (part + 7) / 8 * 8; }

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace phalanx::shared_memory
