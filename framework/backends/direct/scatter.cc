// scatter and reduce_scatter: an input holds a part for every rank.
#include "framework/backends/direct/bulk_copy.h"
#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/part_bytes.h"
#include "framework/backends/direct/reduce_kernel.h"
#include "framework/backends/direct/shares.h"

namespace phalanx::direct {
namespace {

bool is_small(const PartLayout& parts, std::size_t item) {
  return largest_part(parts, item) * static_cast<std::size_t>(parts.ranks()) <= kAtOnceBytes;
}

Shares shares_of(const Operation& operation, const PartLayout& parts, std::size_t item) {
  return {operation, is_small(parts, item) ? small_share_of(largest_part(parts, item))
                                           : share_of(all_of(parts, item), parts.ranks())};
}

template <class Fill, class Drain>
void at_once_or_in_chunks(const Operation& operation, const PartLayout& parts, const Shares& shares, std::size_t item,
                          const Fill& fill, const Drain& drain, int sender) {
  if (is_small(parts, item)) return operation.at_once(shares.bytes(), fill, drain, sender);
  operation.through_scratch(chunks_of(largest_part(parts, item), shares.step()), fill, drain);
}

void scatter_through_scratch(const Operation& operation, const Elements& output, const Elements& input,
                             const PartLayout& parts, int root) {
  const Shares shares = shares_of(operation, parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    if (operation.rank() == root) shares.fill(own, input, parts, chunk);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const Piece piece(output.bytes(), chunk, shares.step());
    const auto* own =
        operation.rank() == root ? input.data + begin_of(parts, root, input.item()) + piece.begin : nullptr;
    copy_bytes(output.data + piece.begin, own != nullptr ? own : shares.from(scratch_of(root), root), piece.bytes);
  };
  at_once_or_in_chunks(operation, parts, shares, output.item(), fill, drain, root);
}

void reduce_scatter_through_scratch(const Operation& operation, const Elements& output, const Elements& input,
                                    const PartLayout& parts, const Reduction& op) {
  const Shares shares = shares_of(operation, parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) { shares.fill(own, input, parts, chunk); };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const Piece piece(output.bytes(), chunk, shares.step());
    c10::SmallVector<const std::byte*, 16> sources;
    for (int rank = 0; rank < operation.size(); ++rank) {
      const auto* own = input.data + begin_of(parts, rank, input.item()) + piece.begin;
      sources.push_back(rank == operation.rank() ? own : shares.from(scratch_of(rank), rank));
    }
    std::byte* target[] = {output.data + piece.begin};
    reduce(output.dtype, op, target, sources, static_cast<std::int64_t>(piece.bytes / output.item()));
  };
  at_once_or_in_chunks(operation, parts, shares, output.item(), fill, drain, Operation::kEverybody);
}

}  // namespace

void scatter(const Operation& operation, Elements output, Elements input, const PartLayout& parts, int root) {
  if (is_small(parts, output.item())) return scatter_through_scratch(operation, output, input, parts, root);
  operation.meet({}, output);
  const auto outputs = operation.outputs();
  if (outputs.empty()) return scatter_through_scratch(operation, output, input, parts, root);
  const BulkCopy copy(2 * all_of(parts, output.item()));
  for (int rank = 0; operation.rank() == root && rank < operation.size(); ++rank) {
    copy(outputs[rank], input.data + begin_of(parts, rank, input.item()), bytes_of(parts, rank, input.item()));
  }
  operation.group.meet_again();
}

void reduce_scatter(const Operation& operation, Elements output, Elements input, const PartLayout& parts,
                    const Reduction& op) {
  if (is_small(parts, input.item())) return reduce_scatter_through_scratch(operation, output, input, parts, op);
  operation.meet(input, {});
  const auto inputs = operation.inputs();
  if (inputs.empty()) return reduce_scatter_through_scratch(operation, output, input, parts, op);
  c10::SmallVector<const std::byte*, 16> sources;
  for (const auto* address : inputs) sources.push_back(address + begin_of(parts, operation.rank(), input.item()));
  std::byte* target[] = {output.data};
  reduce(output.dtype, op, target, sources, output.count);
  operation.group.meet_again();
}

}  // namespace phalanx::direct
