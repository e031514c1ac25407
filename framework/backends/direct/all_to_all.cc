#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/part_bytes.h"
#include "framework/backends/direct/shares.h"
#include "framework/backends/direct/sources.h"
#include "framework/base/error.h"

namespace phalanx::direct {
namespace {

// What every rank sends, by receiver.
using Traffic = std::vector<PartLayout>;

std::size_t largest_part(const Traffic& traffic, std::size_t item) {
  std::size_t most = 0;
  for (const auto& parts : traffic) most = std::max(most, direct::largest_part(parts, item));
  return most;
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
Traffic meet_and_exchange_counts(const Operation& operation, const Elements& input, const PartLayout& from,
                                 const PartLayout& to, std::size_t touched) {
  const int size = operation.size();
  auto* mine = reinterpret_cast<std::int64_t*>(operation.group.next_scratch());
  for (int rank = 0; rank < size; ++rank) {
    mine[rank] = to.count(rank);
    mine[size + rank] = from.count(rank);
  }
  operation.meet_to_copy(input, {}, touched);
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

void pull(const Operation& operation, const Elements& output, const Sources& sources, const PartLayout& from,
          const Traffic& traffic) {
  const auto item = output.item();
  for (int i = 0; i < operation.size(); ++i) {
    const int rank = (operation.rank() + i) % operation.size();  // not all from the same one at a time
    sources.copy(output.data + begin_of(from, rank, item), rank, begin_of(traffic[rank], operation.rank(), item),
                 bytes_of(from, rank, item));
  }
}

}  // namespace

void all_to_all(const Operation& operation, Elements output, Elements input, const PartLayout& from,
                const PartLayout& to) {
  const auto item = input.item();
  const bool even = operation.call.detail == 0;
  const bool small = even && input.bytes() <= kAtOnceBytes;
  const int self = operation.rank();
  const std::size_t touched = 2 * input.bytes() * static_cast<std::size_t>(operation.size());
  const BulkCopy copy(touched);
  const Shares shares(operation, small ? small_share_of(input.bytes() / operation.size())
                                       : share_of(even ? input.bytes() : SIZE_MAX, operation.size()));  // all alike
  const auto fill = [&](std::byte* own, std::int64_t chunk) { shares.fill(own, input, to, chunk); };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    for (int rank = 0; rank < operation.size(); ++rank) {
      const Piece piece(bytes_of(from, rank, item), chunk, shares.step());
      copy(output.data + begin_of(from, rank, item) + piece.begin,
           rank == self ? input.data + begin_of(to, self, item) + piece.begin : shares.from(scratch_of(rank), rank),
           piece.bytes);
    }
  };
  if (small) return operation.at_once(shares.bytes(), fill, drain);
  Traffic traffic(operation.size(), to);
  if (even) {
    operation.meet_to_copy(input, {}, touched);
  } else {
    traffic = meet_and_exchange_counts(operation, input, from, to, touched);
  }
  if (const Sources sources(operation, copy); sources) {
    pull(operation, output, sources, from, traffic);
    operation.group.meet_again();
  } else {
    operation.through_scratch(chunks_of(largest_part(traffic, item), shares.step()), fill, drain);
  }
}

}  // namespace phalanx::direct
