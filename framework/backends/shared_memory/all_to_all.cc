// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/shares.h"
#include "framework/backends/shared_memory/sources.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

// The counts that every rank sends, by receiver.
using Traffic = std::vector<PartLayout>;

std::size_t largest_part(const Traffic& traffic, std::size_t item) {
  std::size_t most = 0;
  for (const auto& parts : traffic) most = std::max(most, shared_memory::largest_part(parts, item));
  return most;
}

void check(const Execution& execution, const Traffic& traffic, int sender, int receiver, std::int64_t expected) {
  const auto sent = traffic[sender].count(receiver);
  if (sent == expected) return;
  throw CommError(CommError::Kind::kMismatch, "all_to_all of " + execution.group.name() + ": ranks disagree: rank " +
                                                  std::to_string(sender) + " sends " + std::to_string(sent) +
                                                  " elements to rank " + std::to_string(receiver) + ", which expects " +
                                                  std::to_string(expected));
}

// The first barrier of ranks that know only their own counts. Every rank checks all counts, so that all see the same
// disagreement.
Traffic exchange_posts_and_counts(const Execution& execution, const Elements& input, const PartLayout& from,
                                  const PartLayout& to, std::size_t touched) {
  const int size = execution.size();
  auto* mine = reinterpret_cast<std::int64_t*>(execution.group.next_scratch());
  for (int rank = 0; rank < size; ++rank) {
    mine[rank] = to.count(rank);
    mine[size + rank] = from.count(rank);
  }
  execution.exchange_posts_to_copy(input, {}, touched);
  const auto counts_of = [&](int rank) { return reinterpret_cast<const std::int64_t*>(execution.group.scratch(rank)); };
  Traffic traffic;
  for (int rank = 0; rank < size; ++rank) traffic.emplace_back(Counts(counts_of(rank), size), size, 0);
  for (int receiver = 0; receiver < size; ++receiver) {
    for (int sender = 0; sender < size; ++sender) {
      check(execution, traffic, sender, receiver, counts_of(receiver)[size + sender]);
    }
  }
  execution.group.barrier();  // after this, the scratch may be used again
  return traffic;
}

void pull(const Execution& execution, const Elements& output, const Sources& sources, const PartLayout& from,
          const Traffic& traffic) {
  const auto item = output.item();
  for (int i = 0; i < execution.size(); ++i) {
    // Begins with this rank, so that not all ranks read from the same rank at a time.
    const int rank = (execution.rank() + i) % execution.size();
    sources.copy(output.data + begin_of(from, rank, item), rank, begin_of(traffic[rank], execution.rank(), item),
                 bytes_of(from, rank, item));
  }
}

}  // namespace

void all_to_all(const Execution& execution, Elements output, Elements input, const PartLayout& from,
                const PartLayout& to) {
  const auto item = input.item();
  const bool even = execution.call.detail == 0;
  const bool small = even && input.bytes() <= kOneStepBytes;
  const int self = execution.rank();
  const std::size_t touched = 2 * input.bytes() * static_cast<std::size_t>(execution.size());
  const BulkCopy copy(touched);
  // All ranks compute the same share size.
  const Shares shares(execution, small ? small_share_of(input.bytes() / execution.size())
                                       : share_of(even ? input.bytes() : SIZE_MAX, execution.size()));
  const auto fill = [&](std::byte* own, std::int64_t chunk) { shares.fill(own, input, to, chunk); };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    for (int rank = 0; rank < execution.size(); ++rank) {
      const ChunkRange range(bytes_of(from, rank, item), chunk, shares.step());
      copy(output.data + begin_of(from, rank, item) + range.begin,
           rank == self ? input.data + begin_of(to, self, item) + range.begin : shares.from(scratch_of(rank), rank),
           range.bytes);
    }
  };
  if (small) return execution.in_one_step(shares.bytes(), fill, drain);
  Traffic traffic(execution.size(), to);
  if (even) {
    execution.exchange_posts_to_copy(input, {}, touched);
  } else {
    traffic = exchange_posts_and_counts(execution, input, from, to, touched);
  }
  if (const Sources sources(execution, copy); sources) {
    pull(execution, output, sources, from, traffic);
    execution.group.barrier();
  } else {
    execution.through_scratch(chunks_of(largest_part(traffic, item), shares.step()), fill, drain);
  }
}

}  // namespace phalanx::shared_memory
