// SPDX-License-Identifier: Apache-2.0
// broadcast, exchange and barrier.
#include <algorithm>
#include <cstring>
#include <span>

#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/sources.h"

namespace phalanx::shared_memory {
namespace {

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

}  // namespace

void broadcast(const Execution& execution, Elements elements, int root) {
  const bool is_root = execution.rank() == root;
  const std::size_t step = step_of(elements.bytes()), touched = elements.bytes() * execution.size();
  const BulkCopy copy(touched);
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    const ChunkRange range(elements.bytes(), chunk, step);
    if (is_root) execution.copy_in(own, elements.data + range.begin, range.bytes);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const ChunkRange range(elements.bytes(), chunk, step);
    if (!is_root) copy(elements.data + range.begin, scratch_of(root), range.bytes);
  };
  if (elements.bytes() <= kOneStepBytes) return execution.in_one_step(elements.bytes(), fill, drain, root);
  execution.exchange_posts_to_copy(elements, {}, touched);
  const Sources sources(execution, copy);
  if (!sources) return execution.through_scratch(chunks_of(elements.bytes(), step), fill, drain);
  if (const auto addresses = sources.reached(); !addresses.empty()) {
    spread_own_slice(execution, elements, addresses, root, copy);
  } else if (!is_root) {
    sources.copy(elements.data, root, 0, elements.bytes());
  }
  execution.group.barrier();
}

void exchange(Group& group, const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) {
  std::ranges::copy(mine, group.next_scratch());
  group.exchange_posts({.call = call, .input = {}, .output = {}});
  for (int rank = 0; rank < group.size(); ++rank) {
    std::memcpy(all.data() + mine.size() * rank, group.scratch(rank), mine.size());
  }
}

void barrier(Group& group, std::optional<Seconds> timeout) {
  group.exchange_posts({.call = {.op = Op::kBarrier}, .input = {}, .output = {}}, timeout);
}

}  // namespace phalanx::shared_memory
