// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/copy_sources.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/part_flow.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

// The counts that every rank sends, by receiver.
using Traffic = std::vector<PartLayout>;

std::size_t largest_part_of(const Traffic& traffic, std::size_t item) {
  std::size_t most = 0;
  for (const auto& parts : traffic) most = std::max(most, largest_part(parts, item));
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

// Lets all ranks know all counts. Every rank checks all of them, so that all see the same disagreement.
Traffic exchange_counts(const Execution& execution, const PartLayout& from, const PartLayout& to) {
  const int size = execution.size();
  std::vector<std::int64_t> mine(2 * static_cast<std::size_t>(size)), all(mine.size() * mine.size() / 2);
  for (int rank = 0; rank < size; ++rank) {
    mine[rank] = to.count(rank);
    mine[size + rank] = from.count(rank);
  }
  exchange(execution.group, execution.call, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto counts_of = [&](int rank) { return all.data() + mine.size() * static_cast<std::size_t>(rank); };
  Traffic traffic;
  for (int rank = 0; rank < size; ++rank) traffic.emplace_back(Counts(counts_of(rank), size), size, 0);
  for (int receiver = 0; receiver < size; ++receiver) {
    for (int sender = 0; sender < size; ++sender) {
      check(execution, traffic, sender, receiver, counts_of(receiver)[size + sender]);
    }
  }
  return traffic;
}

void pull(const Execution& execution, const Elements& output, const CopySources& sources, const PartLayout& from,
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
  auto& group = execution.group;
  const auto item = input.item();
  const bool even = execution.call.detail == 0;
  const int self = execution.rank();
  const Traffic traffic = even ? Traffic(execution.size(), to) : exchange_counts(execution, from, to);
  const BulkCopy copy(2 * input.bytes() * static_cast<std::size_t>(execution.size()));
  const PartFlow flow(execution, input, item, largest_part_of(traffic, item),
                      [&](int rank) -> const PartLayout& { return traffic[rank]; });
  const auto place_of = [&](int rank) { return output.data + begin_of(from, rank, item); };
  const auto bytes_from = [&](int rank) { return bytes_of(from, rank, item); };
  const auto copy_own_part = [&] { copy(place_of(self), input.data + flow.begin_in_input(self), bytes_from(self)); };
  if (flow.fits_payload()) {
    execution.post(flow.payload());
    group.await_posts();
    for (int rank = 0; rank < execution.size(); ++rank) {
      if (rank != self) flow.read_share(rank, place_of(rank), bytes_from(rank));
    }
    return copy_own_part();
  }
  Outflow out(group, flow.own_pieces(), flow.writer());
  execution.post_to_copy(input, {}, out);
  group.await_posts();
  if (const CopySources sources(execution, copy); sources) {
    pull(execution, output, sources, from, traffic);
    return group.finish();
  }
  Inflow in(
      group, execution.sources([&](int peer) { return pieces_of(bytes_from(peer), flow.step()); }),
      [&](int peer, std::int64_t index) { return flow.number(peer, index); },
      [&](int peer, std::int64_t index, const std::byte* piece) {
        const PieceRange range(bytes_from(peer), index, flow.step());
        copy(place_of(peer) + range.begin, piece, range.bytes);
      });
  run_flows(group, out, in);
  copy_own_part();
}

}  // namespace phalanx::shared_memory
