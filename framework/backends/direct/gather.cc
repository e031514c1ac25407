// all_gather and gather: every rank has a part, and all or root want them all.
#include <algorithm>

#include "framework/backends/direct/collectives.h"

namespace phalanx::direct {
namespace {

std::size_t largest_part(const Parts& parts, std::size_t item) {
  std::int64_t most = 0;
  for (int rank = 0; rank < parts.ranks(); ++rank) most = std::max(most, parts.count(rank));
  return static_cast<std::size_t>(most) * item;
}

// `wanted`: whether this rank's output is one that gets the parts.
void gather_through_scratch(const Operation& operation, const Elements& output, const Elements& input,
                            const Parts& parts, bool wanted) {
  const auto item = input.item();
  const std::size_t most = largest_part(parts, item), step = step_of(most);
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    const Piece piece(input.bytes(), chunk, step);
    operation.copy_in(own, input.data + piece.begin, piece.bytes);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    for (int rank = 0; wanted && rank < operation.size(); ++rank) {
      const Piece piece(static_cast<std::size_t>(parts.count(rank)) * item, chunk, step);
      const std::size_t at = static_cast<std::size_t>(parts.begin(rank)) * item + piece.begin;
      const bool own = rank == operation.rank();
      copy_bytes(output.data + at, own ? input.data + piece.begin : scratch_of(rank), piece.bytes);
    }
  };
  if (static_cast<std::size_t>(parts.total()) * item <= kAtOnceBytes) return operation.at_once(most, fill, drain);
  operation.through_scratch(chunks_of(most, step), fill, drain);
}

// This rank's output gets everybody's input.
void pull(const Operation& operation, const Elements& output, const Addresses& inputs, const Parts& parts) {
  const auto item = output.item();
  for (int i = 0; i < operation.size(); ++i) {
    const int rank = (operation.rank() + i) % operation.size();  // not all from the same one at a time
    copy_bytes(output.data + static_cast<std::size_t>(parts.begin(rank)) * item, inputs[rank],
               static_cast<std::size_t>(parts.count(rank)) * item);
  }
}

// Everybody's output gets this rank's input.
void push(const Operation& operation, const Elements& input, const Addresses& outputs, const Parts& parts) {
  const std::size_t at = static_cast<std::size_t>(parts.begin(operation.rank())) * input.item();
  for (int i = 0; i < operation.size(); ++i) {
    copy_bytes(outputs[(operation.rank() + i) % operation.size()] + at, input.data, input.bytes());
  }
}

bool is_small(const Elements& input, const Parts& parts) {
  return static_cast<std::size_t>(parts.total()) * input.item() <= kAtOnceBytes;
}

}  // namespace

void all_gather(const Operation& operation, Elements output, Elements input, const Parts& parts) {
  if (is_small(input, parts)) return gather_through_scratch(operation, output, input, parts, true);
  operation.meet(input, output);
  if (const auto inputs = operation.inputs(); !inputs.empty()) {
    pull(operation, output, inputs, parts);
    operation.group.meet_again();
  } else if (const auto outputs = operation.outputs(); !outputs.empty()) {
    push(operation, input, outputs, parts);
    operation.group.meet_again();
  } else {
    gather_through_scratch(operation, output, input, parts, true);
  }
}

void gather(const Operation& operation, Elements output, Elements input, const Parts& parts, int root) {
  const bool is_root = operation.rank() == root;
  if (is_small(input, parts)) return gather_through_scratch(operation, output, input, parts, is_root);
  operation.meet(input, {});
  if (const auto inputs = operation.inputs(); !inputs.empty()) {
    if (is_root) pull(operation, output, inputs, parts);
    operation.group.meet_again();
  } else {
    gather_through_scratch(operation, output, input, parts, is_root);
  }
}

}  // namespace phalanx::direct
