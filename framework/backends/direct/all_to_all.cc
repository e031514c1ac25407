#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/backends/direct/collectives.h"
#include "framework/base/error.h"

namespace phalanx::direct {
namespace {

// What every rank sends, by receiver.
using Traffic = std::vector<Parts>;

std::size_t largest_part(const Traffic& traffic, std::size_t item) {
  std::int64_t most = 0;
  for (const auto& parts : traffic) {
    for (int rank = 0; rank < parts.ranks(); ++rank) most = std::max(most, parts.count(rank));
  }
  return static_cast<std::size_t>(most) * item;
}

void check(const Operation& operation, const Traffic& traffic, int sender, int receiver, std::int64_t expected) {
  const auto sent = traffic[sender].count(receiver);
  if (sent == expected) return;
  throw CommError(CommError::Kind::kMismatch, "all_to_all of " + operation.group.name() + ": ranks disagree: rank " +
                                                  std::to_string(sender) + " sends " + std::to_string(sent) +
                                                  " elements to rank " + std::to_string(receiver) + ", which expects " +
                                                  std::to_string(expected));
}

// The first meeting of ranks that know only their own counts. Everybody looks at all of them, so that all see the same
// disagreement.
Traffic meet_and_exchange_counts(const Operation& operation, const Elements& input, const Parts& from,
                                 const Parts& to) {
  const int size = operation.size();
  auto* mine = reinterpret_cast<std::int64_t*>(operation.group.next_scratch());
  for (int rank = 0; rank < size; ++rank) {
    mine[rank] = to.count(rank);
    mine[size + rank] = from.count(rank);
  }
  operation.meet(input, {});
  const auto counts_of = [&](int rank) { return reinterpret_cast<const std::int64_t*>(operation.group.scratch(rank)); };
  Traffic traffic;
  for (int rank = 0; rank < size; ++rank) traffic.emplace_back(Counts(counts_of(rank), size), size, 0);
  for (int receiver = 0; receiver < size; ++receiver) {
    for (int sender = 0; sender < size; ++sender) {
      check(operation, traffic, sender, receiver, counts_of(receiver)[size + sender]);
    }
  }
  operation.group.meet_again();  // the scratch may be used
  return traffic;
}

void pull(const Operation& operation, const Elements& output, const Addresses& inputs, const Parts& from,
          const Traffic& traffic) {
  const auto item = output.item();
  for (int i = 0; i < operation.size(); ++i) {
    const int rank = (operation.rank() + i) % operation.size();  // not all from the same one at a time
    const auto begin = static_cast<std::size_t>(traffic[rank].begin(operation.rank()));
    copy_bytes(output.data + static_cast<std::size_t>(from.begin(rank)) * item, inputs[rank] + begin * item,
               static_cast<std::size_t>(from.count(rank)) * item);
  }
}

}  // namespace

void all_to_all(const Operation& operation, Elements output, Elements input, const Parts& from, const Parts& to) {
  const auto item = input.item();
  const bool even = operation.call.detail == 0;
  const bool small = even && input.bytes() <= kAtOnceBytes;
  const std::size_t step = small ? small_share_of(input.bytes() / operation.size())
                                 : share_of(even ? input.bytes() : SIZE_MAX, operation.size());  // alike on all ranks
  const int self = operation.rank();
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    for (int rank = 0; rank < operation.size(); ++rank) {
      if (rank == self) continue;
      const Piece piece(static_cast<std::size_t>(to.count(rank)) * item, chunk, step);
      operation.copy_in(own + step * rank, input.data + static_cast<std::size_t>(to.begin(rank)) * item + piece.begin,
                        piece.bytes);
    }
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    for (int rank = 0; rank < operation.size(); ++rank) {
      const Piece piece(static_cast<std::size_t>(from.count(rank)) * item, chunk, step);
      const auto* own = input.data + static_cast<std::size_t>(to.begin(self)) * item + piece.begin;
      copy_bytes(output.data + static_cast<std::size_t>(from.begin(rank)) * item + piece.begin,
                 rank == self ? own : scratch_of(rank) + step * self, piece.bytes);
    }
  };
  if (small) return operation.at_once(step * operation.size(), fill, drain);
  Traffic traffic(operation.size(), to);
  if (even) {
    operation.meet(input, {});
  } else {
    traffic = meet_and_exchange_counts(operation, input, from, to);
  }
  if (const auto inputs = operation.inputs(); !inputs.empty()) {
    pull(operation, output, inputs, from, traffic);
    operation.group.meet_again();
  } else {
    operation.through_scratch(chunks_of(largest_part(traffic, item), step), fill, drain);
  }
}

}  // namespace phalanx::direct
