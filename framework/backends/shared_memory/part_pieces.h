// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/pieces.h"

namespace phalanx::shared_memory {

/// The order of the pieces in a rank's ring if it has a different part for every other rank: the first piece of every
/// part, in the order of the ranks, then the second ones, and so on. The rank's own part has no pieces.
class PartPieces {
 public:
  PartPieces(const PartLayout& parts, int owner, std::size_t item, std::size_t step) : owner_(owner) {
    for (int rank = 0; rank < parts.ranks(); ++rank) {
      counts_.push_back(rank == owner ? 0 : pieces_of(bytes_of(parts, rank, item), step));
      if (rank != owner) least_ = std::min(least_, counts_.back());
    }
  }

  std::int64_t count(int reader) const { return counts_[reader]; }

  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const auto count : counts_) sum += count;
    return sum;
  }

  /// Returns the place of piece `index` of the part for `reader`.
  std::int64_t place(int reader, std::int64_t index) const {
    if (index < least_) {  // no part ends before this piece
      return index * (static_cast<std::int64_t>(counts_.size()) - 1) + (reader < owner_ ? reader : reader - 1);
    }
    std::int64_t before = 0;
    for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
      before += std::min(counts_[rank], index) + (rank < reader && counts_[rank] > index ? 1 : 0);
    }
    return before;
  }

  /// Goes through the pieces in order.
  class Cursor {
   public:
    explicit Cursor(const PartPieces& pieces) : pieces_(&pieces) { skip_ended_parts(); }

    int reader() const { return reader_; }
    std::int64_t index() const { return index_; }

    void advance() {
      ++reader_;
      skip_ended_parts();
    }

   private:
    // Stays at the end after the last piece.
    void skip_ended_parts() {
      const auto ranks = static_cast<int>(pieces_->counts_.size());
      for (int skipped = 0; skipped <= ranks; ++skipped, ++reader_) {
        if (reader_ == ranks) reader_ = 0, ++index_;
        if (pieces_->counts_[reader_] > index_) return;
      }
    }

    const PartPieces* pieces_;
    int reader_ = 0;
    std::int64_t index_ = 0;
  };

 private:
  int owner_;
  c10::SmallVector<std::int64_t, 16> counts_;  // by reader
  std::int64_t least_ = INT64_MAX;             // of the counts
};

}  // namespace phalanx::shared_memory
