// SPDX-License-Identifier: Apache-2.0
// broadcast, exchange and barrier.
#include <algorithm>
#include <cstring>
#include <span>

#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/copy_sources.h"
#include "framework/backends/shared_memory/pieces.h"

namespace phalanx::shared_memory {
namespace {

void broadcast_payload(const Execution& execution, const Elements& elements, int root) {
  if (execution.rank() == root) return execution.post({elements.data, elements.bytes()});
  execution.post();
  execution.group.await_posts(root);
  execution.group.read_payload(root, 0, elements.bytes(), elements.data);
}

// Copies slice r of the root's elements to all ranks, where r is this rank.
void spread_own_slice(const Execution& execution, const Elements& elements, std::span<std::byte* const> addresses,
                      int root, const BulkCopy& copy) {
  const std::size_t lines = (elements.bytes() + kLine - 1) / kLine;
  const auto border = [&](int rank) {
    return std::min(elements.bytes(), lines * static_cast<std::size_t>(rank) / execution.size() * kLine);
  };
  const std::size_t begin = border(execution.rank()), bytes = border(execution.rank() + 1) - begin;
  for (int rank = 0; rank < execution.size(); ++rank) {
    if (rank != root) copy(addresses[rank] + begin, addresses[root] + begin, bytes);
  }
}

// Broadcasts memory that all ranks reach, or fetch from the root. All posts were awaited.
void broadcast_in_place(const Execution& execution, const Elements& elements, const CopySources& sources, int root,
                        const BulkCopy& copy) {
  if (const auto addresses = sources.reached(); !addresses.empty()) {
    spread_own_slice(execution, elements, addresses, root, copy);
  } else if (execution.rank() != root) {
    sources.copy(elements.data, root, 0, elements.bytes());
  }
  execution.group.finish();
}

// Returns true if the data is in the root's ring, which other ranks know as soon as the root has posted. If it is not,
// all posts have been awaited.
bool root_uses_ring(const Execution& execution, bool through_ring, int root) {
  if (execution.rank() == root && through_ring) return true;
  if (execution.rank() != root) {
    execution.group.await_posts(root);
    if (execution.uses_ring(root)) return true;
  }
  execution.group.await_posts();
  return false;
}

}  // namespace

void broadcast(const Execution& execution, Elements elements, int root) {
  auto& group = execution.group;
  const std::size_t bytes = elements.bytes(), step = step_of(bytes);
  if (bytes <= kPayloadBytes) return broadcast_payload(execution, elements, root);
  const bool is_root = execution.rank() == root;
  const BulkCopy copy(bytes * execution.size());
  Outflow out(group, is_root ? pieces_of(bytes, step) : 0, [&](std::int64_t index, std::byte* piece) {
    const PieceRange range(bytes, index, step);
    group.piece_writer().write(piece, elements.data + range.begin, range.bytes);
    return kAllReaders;
  });
  const bool through_ring = execution.post_to_copy(elements, {}, out);
  if (!root_uses_ring(execution, through_ring, root)) {
    if (const CopySources sources(execution, copy); sources) {
      return broadcast_in_place(execution, elements, sources, root, copy);
    }
  }
  if (is_root) return run_flow_out(group, out);
  Inflow in(
      group, {{.rank = root, .pieces = pieces_of(bytes, step)}},
      [first = group.first_piece_of(root)](int, std::int64_t index) { return first + index; },
      [&](int, std::int64_t index, const std::byte* piece) {
        const PieceRange range(bytes, index, step);
        copy(elements.data + range.begin, piece, range.bytes);
      });
  run_flow_in(group, in);
}

void exchange(Group& group, const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) {
  for (std::size_t begin = 0; begin == 0 || begin < mine.size(); begin += kPayloadBytes) {
    const auto payload = mine.subspan(begin, std::min(kPayloadBytes, mine.size() - begin));
    group.begin(call.op);
    group.post({.call = call, .input = {}, .output = {}}, payload);
    group.await_posts();
    for (int rank = 0; rank < group.size(); ++rank) {
      std::byte* const to = all.data() + mine.size() * static_cast<std::size_t>(rank) + begin;
      if (rank == group.rank()) {
        copy_bytes(to, payload.data(), payload.size());
      } else {
        group.read_payload(rank, 0, payload.size(), to);
      }
    }
  }
}

void barrier(Group& group, std::optional<Seconds> timeout) {
  group.begin(Op::kBarrier, timeout);
  group.post({.call = {.op = Op::kBarrier}, .input = {}, .output = {}});
  group.await_posts();
}

}  // namespace phalanx::shared_memory
