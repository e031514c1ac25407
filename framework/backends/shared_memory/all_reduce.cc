// SPDX-License-Identifier: Apache-2.0
// all_reduce and reduce: every rank combines one slice.
#include <algorithm>

#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/reduce_kernel.h"

namespace phalanx::shared_memory {
namespace {

constexpr int kAll = -1;  // as a root: all ranks get the result

struct Slice {
  std::int64_t begin = 0, count = 0;
};

// Returns the slice of a rank. Slices are nearly equal, and each but the last is a whole number of cache lines, so that
// no two ranks write to the same line.
Slice slice_of(std::int64_t count, std::size_t item, int rank, int size) {
  const auto per_line = static_cast<std::int64_t>(kLine / item);
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const std::int64_t begin = std::min(count, lines * rank / size * per_line);
  const std::int64_t end = std::min(count, lines * (rank + 1) / size * per_line);
  return {begin, end - begin};
}

Addresses scratches(const Execution& execution, int half) {
  Addresses all;
  for (int rank = 0; rank < execution.size(); ++rank) all.push_back(execution.group.scratch(rank, half));
  return all;
}

// Combines this rank's slice of the data at `addresses` and writes it to the root's memory, or to the memory of all
// ranks.
void reduce_own_slice(const Execution& execution, Addresses addresses, std::int64_t count, const Reduction& op,
                      int root) {
  const auto item = c10::elementSize(execution.call.dtype);
  const Slice slice = slice_of(count, item, execution.rank(), execution.size());
  for (auto& address : addresses) address += static_cast<std::size_t>(slice.begin) * item;
  const std::span<std::byte* const> targets(root == kAll ? addresses.data() : &addresses[root],
                                            root == kAll ? addresses.size() : 1);
  const c10::SmallVector<const std::byte*, 16> sources(addresses.begin(), addresses.end());
  reduce(execution.call.dtype, op, targets, sources, slice.count);
}

void two_shot(const Execution& execution, const Elements& elements, const Reduction& op, int root) {
  auto& group = execution.group;
  const auto item = elements.item();
  const bool gets_result = root == kAll || root == execution.rank();
  int half = 0;
  for (std::int64_t chunk = 0; chunk < chunks_of(elements.bytes(), kScratchBytes); ++chunk, half ^= 1) {
    const ChunkRange range(elements.bytes(), chunk, kScratchBytes);
    std::byte* own = group.scratch(execution.rank(), half);
    copy_bytes(own, elements.data + range.begin, range.bytes);
    group.barrier();
    reduce_own_slice(execution, scratches(execution, half), static_cast<std::int64_t>(range.bytes / item), op, root);
    group.barrier();  // the other half is free now: all ranks have copied its data out
    if (gets_result) copy_bytes(elements.data + range.begin, own, range.bytes);
  }
}

// `scratch_of(rank)` is the payload of `rank`, or the data that it copied into its scratch before the first barrier.
template <class ScratchOf>
void combine_all(const Execution& execution, const Elements& elements, const Reduction& op, int root,
                 const ScratchOf& scratch_of) {
  if (root != kAll && root != execution.rank()) return;
  c10::SmallVector<const std::byte*, 16> sources;
  for (int rank = 0; rank < execution.size(); ++rank) sources.push_back(scratch_of(rank));
  std::byte* target[] = {elements.data};
  reduce(elements.dtype, op, target, sources, elements.count);
}

// If this returns true, all ranks have prepared their scratch, since they decide by the same sizes.
bool no_rank_is_reachable(const Group& group) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (group.post_of(rank).input.region != 0) return false;
  }
  return true;
}

void combine(const Execution& execution, const Elements& elements, const Reduction& op, int root) {
  auto& group = execution.group;
  const std::size_t bytes = elements.bytes();
  const auto combine_here = [&](const auto& scratch_of) { combine_all(execution, elements, op, root, scratch_of); };
  if (bytes <= kInPlaceBytes) {
    return execution.exchange_payload({elements.data, bytes},
                                      [&](const auto& payload_of, int) { combine_here(payload_of); });
  }
  const Location location = execution.locate(elements);
  const bool prepared = location.region == 0 && bytes <= kOneStepBytes;
  if (prepared) copy_bytes(group.next_scratch(), elements.data, bytes);
  group.exchange_posts({.call = execution.call, .input = location, .output = {}});
  if (prepared && no_rank_is_reachable(group)) {
    combine_here([&](int rank) { return group.scratch(rank); });
  } else if (auto addresses = execution.inputs(); !addresses.empty()) {
    reduce_own_slice(execution, std::move(addresses), elements.count, op, root);
    group.barrier();
  } else {
    two_shot(execution, elements, op, root);
  }
}

}  // namespace

void all_reduce(const Execution& execution, Elements elements, const Reduction& op) {
  combine(execution, elements, op, kAll);
}

void reduce(const Execution& execution, Elements elements, const Reduction& op, int root) {
  combine(execution, elements, op, root);
}

}  // namespace phalanx::shared_memory
