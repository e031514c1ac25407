// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/two_shot.h"

#include <c10/util/SmallVector.h>

#include "framework/backends/shared_memory/flow.h"
#include "framework/backends/shared_memory/reduce_run.h"
#include "framework/backends/shared_memory/slice.h"

namespace phalanx::shared_memory {

std::uint64_t TwoShot::data_of(int rank, std::int64_t chunk) const {
  const std::int64_t results_before = std::max<std::int64_t>(0, chunk - kDepth + 1);
  return group_.first_piece_of(rank) + static_cast<std::uint64_t>(chunk + results_before);
}

std::uint64_t TwoShot::result_of(int rank, std::int64_t chunk) const {
  const std::int64_t data_before = std::min(chunks_, chunk + kDepth);
  return group_.first_piece_of(rank) + static_cast<std::uint64_t>(chunk + data_before);
}

TwoShot::Bytes TwoShot::slice(std::int64_t chunk, int rank) const {
  const std::size_t item = elements_.item();
  const auto slice = slice_of(static_cast<std::int64_t>(range(chunk).bytes / item), item, rank, group_.size());
  return {static_cast<std::size_t>(slice.begin) * item, static_cast<std::size_t>(slice.count) * item};
}

bool TwoShot::has_data_of(int peer) const {
  return peer == group_.rank() || group_.ring_of(peer).has(data_of(peer, combined_));
}

bool TwoShot::ready() const {
  if (done() || !group_.ring_has_room()) return false;
  if (writes_data()) return true;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (!has_data_of(peer)) return false;
  }
  return true;
}

bool TwoShot::awaits(int peer) const {
  return !done() && (group_.ring_awaits(peer) || (!writes_data() && !has_data_of(peer)));
}

void TwoShot::write_data() {
  group_.piece_writer().write(group_.ring().next(), memory(written_), range(written_).bytes);
  group_.publish_piece(kAllReaders);
  ++written_;
}

void TwoShot::write_result() {
  const auto [begin, bytes] = slice(combined_, group_.rank());
  const std::byte* const own = memory(combined_) + begin;
  c10::SmallVector<const std::byte*, 16> sources;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const bool is_own = rank == group_.rank();
    sources.push_back(is_own ? own : group_.ring_of(rank).piece(data_of(rank, combined_)) + begin);
  }
  reduce_run(elements_, range(combined_).begin + begin, sources, bytes, op_);
  group_.piece_writer().write(group_.ring().next(), own, bytes);
  group_.publish_piece(kAllReaders);
  ++combined_;
}

void TwoShot::run() {
  // To take a result is to give up all pieces before it, so this rank must have combined the data among them. It never
  // takes the data itself: results that it still needs may lie before it.
  JointInflow in(
      group_, chunks_, [this](int peer, std::int64_t chunk) { return result_of(peer, chunk); },
      [this](std::int64_t chunk) { return combined_ >= std::min(chunk + kDepth, chunks_); },
      [this](std::int64_t chunk, const auto& piece_of) {
        for (int rank = 0; rank < group_.size(); ++rank) {
          if (rank == group_.rank()) continue;
          const auto [begin, bytes] = slice(chunk, rank);
          copy_bytes(memory(chunk) + begin, piece_of(rank), bytes);
        }
      });
  run_flows(group_, *this, in);
}

}  // namespace phalanx::shared_memory
