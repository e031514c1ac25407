// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/execution.h"
#include "framework/backends/shared_memory/part_bytes.h"

namespace phalanx::shared_memory {

/// The layout of a rank's scratch with one share for every other rank: a piece of the part for that rank. A rank reads
/// its own part directly from its input.
class Shares {
 public:
  /// `step` is the size of one share in bytes.
  Shares(const Execution& execution, std::size_t step) : execution_(execution), step_(step) {}

  std::size_t step() const { return step_; }
  std::size_t bytes() const { return step_ * static_cast<std::size_t>(execution_.size() - 1); }

  /// Returns this rank's share in the scratch of `sender`.
  const std::byte* from(const std::byte* scratch, int sender) const {
    return scratch + step_ * slot(sender, execution_.rank());
  }

  /// Copies chunk `chunk` of all parts but this rank's own.
  void fill(std::byte* own, const Elements& input, const PartLayout& parts, std::int64_t chunk) const {
    for (int rank = 0; rank < parts.ranks(); ++rank) {
      if (rank == execution_.rank()) continue;
      const ChunkRange range(bytes_of(parts, rank, input.item()), chunk, step_);
      execution_.copy_in(own + step_ * slot(execution_.rank(), rank),
                         input.data + begin_of(parts, rank, input.item()) + range.begin, range.bytes);
    }
  }

 private:
  static std::size_t slot(int sender, int receiver) {
    return static_cast<std::size_t>(receiver < sender ? receiver : receiver - 1);
  }

  const Execution& execution_;
  std::size_t step_;
};

}  // namespace phalanx::shared_memory
