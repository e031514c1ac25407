// scatter, reduce_scatter and all_to_all: a rank's input holds a part for every rank.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/reduce_kernel.h"
#include "framework/base/error.h"

namespace phalanx::direct {
namespace {

std::size_t bytes_of(const Parts& parts, int rank, std::size_t item) {
  return static_cast<std::size_t>(parts.count(rank)) * item;
}

std::size_t begin_of(const Parts& parts, int rank, std::size_t item) {
  return static_cast<std::size_t>(parts.begin(rank)) * item;
}

std::size_t largest_part(const Parts& parts, std::size_t item) {
  std::size_t most = 0;
  for (int rank = 0; rank < parts.ranks(); ++rank) most = std::max(most, bytes_of(parts, rank, item));
  return most;
}

bool is_small(const Parts& parts, std::size_t item) {
  return largest_part(parts, item) * static_cast<std::size_t>(parts.ranks()) <= kAtOnceBytes;
}

// A scratch half holds a share for every rank: a piece of each part.
class Shares {
 public:
  Shares(const Parts& parts, std::size_t item)
      : step_(is_small(parts, item) ? small_share_of(largest_part(parts, item))
                                    : share_of(static_cast<std::size_t>(parts.total()) * item, parts.ranks())) {}

  std::size_t step() const { return step_; }
  const std::byte* of(const std::byte* scratch, int rank) const { return scratch + step_ * rank; }

  // But this rank's own part, which it finds where it is.
  void fill(const Operation& operation, std::byte* own, const Elements& input, const Parts& parts,
            std::int64_t chunk) const {
    for (int rank = 0; rank < parts.ranks(); ++rank) {
      if (rank == operation.rank()) continue;
      const Piece piece(bytes_of(parts, rank, input.item()), chunk, step_);
      operation.copy_in(own + step_ * rank, input.data + begin_of(parts, rank, input.item()) + piece.begin,
                        piece.bytes);
    }
  }

 private:
  std::size_t step_;
};

template <class Fill, class Drain>
void at_once_or_in_chunks(const Operation& operation, const Parts& parts, const Shares& shares, std::size_t item,
                          const Fill& fill, const Drain& drain, int sender) {
  const auto ranks = static_cast<std::size_t>(operation.size());
  if (is_small(parts, item)) return operation.at_once(shares.step() * ranks, fill, drain, sender);
  operation.through_scratch(chunks_of(largest_part(parts, item), shares.step()), fill, drain);
}

void scatter_through_scratch(const Operation& operation, const Elements& output, const Elements& input,
                             const Parts& parts, int root) {
  const Shares shares(parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    if (operation.rank() == root) shares.fill(operation, own, input, parts, chunk);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const Piece piece(output.bytes(), chunk, shares.step());
    const auto* own =
        operation.rank() == root ? input.data + begin_of(parts, root, input.item()) + piece.begin : nullptr;
    copy_bytes(output.data + piece.begin, own != nullptr ? own : shares.of(scratch_of(root), operation.rank()),
               piece.bytes);
  };
  at_once_or_in_chunks(operation, parts, shares, output.item(), fill, drain, root);
}

void reduce_scatter_through_scratch(const Operation& operation, const Elements& output, const Elements& input,
                                    const Parts& parts, const Reduction& op) {
  const Shares shares(parts, output.item());
  const auto fill = [&](std::byte* own, std::int64_t chunk) { shares.fill(operation, own, input, parts, chunk); };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    const Piece piece(output.bytes(), chunk, shares.step());
    c10::SmallVector<const std::byte*, 16> sources;
    for (int rank = 0; rank < operation.size(); ++rank) {
      const auto* own = input.data + begin_of(parts, rank, input.item()) + piece.begin;
      sources.push_back(rank == operation.rank() ? own : shares.of(scratch_of(rank), operation.rank()));
    }
    std::byte* target[] = {output.data + piece.begin};
    reduce(output.dtype, op, target, sources, static_cast<std::int64_t>(piece.bytes / output.item()));
  };
  at_once_or_in_chunks(operation, parts, shares, output.item(), fill, drain, Operation::kEverybody);
}

}  // namespace

void scatter(const Operation& operation, Elements output, Elements input, const Parts& parts, int root) {
  if (is_small(parts, output.item())) return scatter_through_scratch(operation, output, input, parts, root);
  operation.meet({}, output);
  const auto outputs = operation.outputs();
  if (outputs.empty()) return scatter_through_scratch(operation, output, input, parts, root);
  for (int rank = 0; operation.rank() == root && rank < operation.size(); ++rank) {
    copy_bytes(outputs[rank], input.data + begin_of(parts, rank, input.item()), bytes_of(parts, rank, input.item()));
  }
  operation.group.meet_again();
}

void reduce_scatter(const Operation& operation, Elements output, Elements input, const Parts& parts,
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
