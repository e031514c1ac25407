// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/ring.h"

#include "framework/backends/shared_memory/schedule_point.h"

namespace phalanx::shared_memory {

RingWriter::RingWriter(int rank, int ranks, Progress& filled, const Progress* taken, std::byte* data)
    : rank_(rank), ranks_(ranks), filled_(filled), taken_(taken), data_(data), known_taken_(ranks) {}

bool RingWriter::is_awaited(int rank) const {
  if (position_ < kPieces || rank == rank_) return false;
  const int reader = slot().reader;
  if (reader != kAllReaders && reader != rank) return false;
  const std::uint64_t needed = position_ - kPieces + 1;
  if (known_taken_[rank] < needed) known_taken_[rank] = taken_[rank].pieces.load(std::memory_order_acquire);
  return known_taken_[rank] < needed;
}

void RingWriter::publish(std::uint64_t sequence, int reader) {
  slots_[position_ % kPieces] = {sequence, reader};
  schedule_point();
  filled_.pieces.store(++position_, std::memory_order_release);
}

void RingReader::take(std::uint64_t number) {
  schedule_point();
  taken_->pieces.store(number + 1, std::memory_order_release);
}

}  // namespace phalanx::shared_memory
