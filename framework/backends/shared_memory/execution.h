// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "framework/backends/shared_memory/flow.h"
#include "framework/backends/shared_memory/group.h"
#include "framework/comm/operations/operation.h"

namespace phalanx::shared_memory {

/// One address per rank; empty if not all ranks can be reached.
using Addresses = c10::SmallVector<std::byte*, 16>;

/// Finds the memory of the ranks of a group.
class AddressBook {
 public:
  virtual ~AddressBook() = default;

  /// Returns where the other ranks find [begin, begin + bytes) of this rank; region 0 if they do not reach it.
  virtual Location locate(const void* begin, std::size_t bytes) const = 0;

  /// Translates a location that every rank has posted in the current operation to addresses of this rank; empty if one
  /// of them cannot be reached. All ranks get the same answer, reachable or not. All posts must have been awaited, and
  /// none may have a payload.
  virtual Addresses addresses(const Group& group, Location Post::* which) const = 0;
};

/// A dense run of elements.
struct Elements {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  c10::ScalarType dtype = c10::kFloat;

  std::size_t item() const { return c10::elementSize(dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(count) * item(); }
};

/// One rank's part in an operation.
struct Execution {
  Group& group;
  const AddressBook& book;
  const Call& call;
  NativeWay way = NativeWay::kDefault;

  int rank() const { return group.rank(); }
  int size() const { return group.size(); }

  /// Begins an operation whose data travels with the posts: lets the other ranks read `payload`.
  void post(std::span<const std::byte> payload = {}) const {
    group.begin(call.op);
    group.post({.call = call, .input = {}, .output = {}}, payload);
  }

  /// Begins an operation in which others read `input` or write `output` where these are within their reach. `out` is
  /// the flow that this rank has if they are not. Returns true if this rank's input is not within reach, so that the
  /// flow is needed whatever the others do.
  template <class Out>
  bool post(const Elements& input, const Elements& output, Out& out) const {
    group.begin(call.op);
    return post_at(locate(input), output, out);
  }

  /// Does the same for an input that others only copy, which they may therefore fetch.
  template <class Out>
  bool post_to_copy(const Elements& input, const Elements& output, Out& out) const {
    group.begin(call.op);
    Location location = locate(input);
    if (location.region == 0 && way == NativeWay::kKernelCopy && input.data != nullptr) {
      location = {reinterpret_cast<std::uint64_t>(input.data), kFetched};
    }
    return post_at(location, output, out);
  }

  /// Returns true if `peer`, whose post was awaited, leaves its input in its ring.
  bool uses_ring(int peer) const { return is_ring(group.post_of(peer).input); }

  /// Returns the sources of a flow that takes pieces_of(rank) pieces from each other rank.
  template <class PiecesOf>
  SourceList sources(const PiecesOf& pieces_of) const {
    SourceList all;
    for (int i = 1; i < size(); ++i) {
      const int peer = (rank() + i) % size();  // not all ranks read from the same one at a time
      if (const std::int64_t pieces = pieces_of(peer); pieces > 0) all.push_back({.rank = peer, .pieces = pieces});
    }
    return all;
  }

  bool input_is_fetched() const { return group.post_of(0).input.region == kFetched; }

  Addresses inputs() const { return book.addresses(group, &Post::input); }
  Addresses outputs() const { return book.addresses(group, &Post::output); }

  Location locate(const Elements& elements) const {
    return elements.data == nullptr ? Location{} : book.locate(elements.data, elements.bytes());
  }

 private:
  // If the input is not within reach, the first piece is written before the post, so that both arrive together.
  template <class Out>
  bool post_at(Location input, const Elements& output, Out& out) const {
    const bool through_ring = input.region == 0;
    if (through_ring) {
      input = {group.ring().position(), kRing};
      if (out.ready()) {
        out.step();
        input.region = kRingBegun;
      }
    } else {
      group.set_first_piece(group.ring().position());
    }
    group.post({.call = call, .input = input, .output = locate(output)});
    return through_ring;
  }
};

/// Returns the bytes of one share of a payload that has a share for each rank.
inline std::size_t share_of(std::size_t part) { return (part + 7) / 8 * 8; }

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace phalanx::shared_memory
