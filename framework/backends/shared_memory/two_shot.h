// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/execution.h"
#include "framework/backends/shared_memory/pieces.h"
#include "framework/comm/operations/reduction.h"

namespace phalanx::shared_memory {

/// An all_reduce in which every rank combines a slice of each chunk of the tensors, and leaves the result in its ring
/// for the others.
///
/// Piece c of a rank's ring is its own data of a chunk, and piece r is its slice of the result. The pieces of chunks 0
/// to n - 1 are c0, ..., c(D-1), r0, cD, r1, c(D+1), ..., r(n-1): a rank writes the data of D chunks before it needs
/// that of others, so that ranks that share a core need not take turns for every chunk.
class TwoShot {
 public:
  TwoShot(const Execution& execution, const Elements& elements, const Reduction& op)
      : group_(execution.group), elements_(elements), op_(op), chunks_(pieces_of(elements.bytes(), kPieceBytes)) {}

  // The flow of this rank's pieces, for Execution::post(). The first piece needs no other rank.
  bool done() const { return combined_ == chunks_; }
  bool ready() const;
  bool awaits(int peer) const;
  void step() { writes_data() ? write_data() : write_result(); }

  /// Writes the remaining pieces and takes the results of others. All posts were awaited.
  void run();

 private:
  // D. A rank is at most D chunks ahead of the slowest one in combining, which has taken the results up to D + 1 chunks
  // before. There are two pieces per chunk, so the last one in a ring is at most 4 D + 4 after the first that is not
  // taken, and no rank waits for room.
  static constexpr std::int64_t kDepth = 24;
  static_assert(4 * kDepth + 4 < static_cast<std::int64_t>(kPieces));

  struct Bytes {
    std::size_t begin, count;
  };

  PieceRange range(std::int64_t chunk) const { return {elements_.bytes(), chunk, kPieceBytes}; }
  std::byte* memory(std::int64_t chunk) const { return elements_.data + range(chunk).begin; }
  Bytes slice(std::int64_t chunk, int rank) const;  // the part of a chunk that a rank combines

  std::uint64_t data_of(int rank, std::int64_t chunk) const;    // number of piece c
  std::uint64_t result_of(int rank, std::int64_t chunk) const;  // number of piece r

  bool writes_data() const { return written_ < chunks_ && written_ < combined_ + kDepth; }
  bool has_data_of(int peer) const;
  void write_data();
  void write_result();
  void take_results(std::int64_t chunk);

  Group& group_;
  const Elements& elements_;
  const Reduction& op_;
  std::int64_t chunks_, written_ = 0, combined_ = 0;
};

}  // namespace phalanx::shared_memory
