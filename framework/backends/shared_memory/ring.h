// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

// The ring of a rank: memory in which it leaves pieces of its data for other ranks, which may copy one piece while the
// rank writes the next. A piece is for one reader or for all other ranks. Pieces are numbered from 0 over all
// operations; piece n is in slot n % kPieces. The numbers never wrap: at a billion pieces per second, 64 bits last 500
// years.

/// The largest piece. It is a multiple of the size of every element.
inline constexpr std::size_t kPieceBytes = 16 << 10;
/// The slots of a ring. The ring is larger than the cache of a core, so that a line is rarely still in the cache of its
/// last reader when it is written again, which would cost several times as much.
inline constexpr std::uint64_t kPieces = 128;
inline constexpr std::size_t kRingBytes = kPieceBytes * kPieces;
inline constexpr int kAllReaders = -1;

/// A number that one rank advances and others read, in a line of its own.
struct alignas(kLine) Progress {
  std::atomic<std::uint64_t> pieces{0};
};

/// The owner's side. Not thread-safe.
class RingWriter {
 public:
  /// `filled` is the number of pieces that were written, and taken[r] that of the pieces that rank r needs no longer.
  RingWriter(int rank, int ranks, Progress& filled, const Progress* taken, std::byte* data);

  /// Returns the number of the next piece.
  std::uint64_t position() const { return position_; }

  /// Returns true if the next slot may be written: every reader of the piece in it has taken it, or has_finished(rank,
  /// sequence) returns true for the operation of that piece.
  template <class HasFinished>
  bool has_room(const HasFinished& has_finished) const {
    if (position_ < kPieces) return true;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (is_awaited(rank) && !has_finished(rank, slot().sequence)) return false;
    }
    return true;
  }

  /// Returns true if the next slot cannot be written because `rank` has not taken the piece in it.
  bool is_awaited(int rank) const;

  /// Returns the operation of the piece in the next slot.
  std::uint64_t oldest_sequence() const { return slot().sequence; }

  /// Returns the memory of the next piece. There must be room.
  std::byte* next() const { return data_ + position_ % kPieces * kPieceBytes; }

  /// Publishes the next piece, which belongs to operation `sequence`, for one reader or kAllReaders.
  void publish(std::uint64_t sequence, int reader);

 private:
  struct Slot {
    std::uint64_t sequence = 0;
    int reader = kAllReaders;
  };
  const Slot& slot() const { return slots_[position_ % kPieces]; }

  int rank_, ranks_;
  Progress& filled_;
  const Progress* taken_;
  std::byte* data_;
  std::uint64_t position_ = 0;
  std::vector<Slot> slots_{kPieces};
  mutable std::vector<std::uint64_t> known_taken_;  // the values that this rank read last
};

/// A reader's side. Not thread-safe.
class RingReader {
 public:
  RingReader(const Progress& filled, Progress& taken, const std::byte* data)
      : filled_(&filled), taken_(&taken), data_(data) {}

  /// Returns true if piece `number` was written.
  bool has(std::uint64_t number) {
    if (number >= known_filled_) known_filled_ = filled_->pieces.load(std::memory_order_acquire);
    return number < known_filled_;
  }

  /// Records that the pieces before `number` were written, as this rank knows from memory that was published later.
  void set_filled(std::uint64_t number) { known_filled_ = number > known_filled_ ? number : known_filled_; }

  const std::byte* piece(std::uint64_t number) const { return data_ + number % kPieces * kPieceBytes; }

  /// Gives up piece `number` and those before it, so that the owner may use their slots again.
  void take(std::uint64_t number);

 private:
  const Progress* filled_;
  Progress* taken_;
  const std::byte* data_;
  std::uint64_t known_filled_ = 0;
};

}  // namespace phalanx::shared_memory
