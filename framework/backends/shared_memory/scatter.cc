// SPDX-License-Identifier: Apache-2.0
// scatter and reduce_scatter: an input holds a part for every rank.
#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/reduce_kernel.h"
#include "framework/backends/shared_memory/shares.h"

namespace phalanx::shared_memory {
namespace {

bool is_small(const PartLayout& parts, std::size_t item) {
  return largest_part(parts, item) * static_cast<std::size_t>(parts.ranks()) <= kOneStepBytes;
}

Shares shares_of(const Execution& execution, const PartLayout& parts, std::size_t item) {
  return {execution, is_small(parts, item) ? small_share_of(largest_part(parts, item))
                                           : share_of(all_of(parts, item), parts.ranks())};
}

template <class Fill, class Drain>
void in_one_step_or_chunks(const Execution& execution, const PartLayout& parts, const Shares& shares, std::size_t item,
                           const Fill& fill, const Drain& drain, int sender) {
  if (is_small(parts, item)) return execution.in_one_step(shares.bytes(), fill, drain, sender);
  execution.through_scratch(chunks_of(largest_part(parts, item), shares.step()), fill, drain);
}

void scatter_through_scratch(const Execution& execution, const Elements& output, const Elements& input,
                             const PartLayout& parts, int root) {
  const Shares shares = shares_of(execution, parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    if (execution.rank() == root) shares.fill(own, input, parts, chunk);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const ChunkRange range(output.bytes(), chunk, shares.step());
    const auto* own =
        execution.rank() == root ? input.data + begin_of(parts, root, input.item()) + range.begin : nullptr;
    copy_bytes(output.data + range.begin, own != nullptr ? own : shares.from(scratch_of(root), root), range.bytes);
  };
  in_one_step_or_chunks(execution, parts, shares, output.item(), fill, drain, root);
}

void reduce_scatter_through_scratch(const Execution& execution, const Elements& output, const Elements& input,
                                    const PartLayout& parts, const Reduction& op) {
  const Shares shares = shares_of(execution, parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) { shares.fill(own, input, parts, chunk); };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const ChunkRange range(output.bytes(), chunk, shares.step());
    c10::SmallVector<const std::byte*, 16> sources;
    for (int rank = 0; rank < execution.size(); ++rank) {
      const auto* own = input.data + begin_of(parts, rank, input.item()) + range.begin;
      sources.push_back(rank == execution.rank() ? own : shares.from(scratch_of(rank), rank));
    }
    std::byte* target[] = {output.data + range.begin};
    reduce(output.dtype, op, target, sources, static_cast<std::int64_t>(range.bytes / output.item()));
  };
  in_one_step_or_chunks(execution, parts, shares, output.item(), fill, drain, Execution::kAllRanks);
}

}  // namespace

void scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root) {
  if (is_small(parts, output.item())) return scatter_through_scratch(execution, output, input, parts, root);
  execution.exchange_posts({}, output);
  const auto outputs = execution.outputs();
  if (outputs.empty()) return scatter_through_scratch(execution, output, input, parts, root);
  const BulkCopy copy(2 * all_of(parts, output.item()));
  for (int rank = 0; execution.rank() == root && rank < execution.size(); ++rank) {
    copy(outputs[rank], input.data + begin_of(parts, rank, input.item()), bytes_of(parts, rank, input.item()));
  }
  execution.group.barrier();
}

void reduce_scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts,
                    const Reduction& op) {
  if (is_small(parts, input.item())) return reduce_scatter_through_scratch(execution, output, input, parts, op);
  execution.exchange_posts(input, {});
  const auto inputs = execution.inputs();
  if (inputs.empty()) return reduce_scatter_through_scratch(execution, output, input, parts, op);
  c10::SmallVector<const std::byte*, 16> sources;
  for (const auto* address : inputs) sources.push_back(address + begin_of(parts, execution.rank(), input.item()));
  std::byte* target[] = {output.data};
  reduce(output.dtype, op, target, sources, output.count);
  execution.group.barrier();
}

}  // namespace phalanx::shared_memory
