// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/backends/shared_memory/ring.h"

namespace phalanx::shared_memory {

/// Returns the size of the pieces of a run of bytes. Smaller runs have smaller pieces, so that their readers begin
/// sooner.
inline std::size_t step_of(std::size_t bytes) { return bytes < 4 * kPieceBytes ? kPieceBytes / 2 : kPieceBytes; }

/// Returns the number of pieces of a run of bytes that is cut every `step` bytes.
inline std::int64_t pieces_of(std::size_t bytes, std::size_t step) {
  return static_cast<std::int64_t>((bytes + step - 1) / step);
}

/// Piece `index` of a run of bytes; empty after the end of the run.
struct PieceRange {
  std::size_t begin = 0, bytes = 0;

  PieceRange(std::size_t whole, std::int64_t index, std::size_t step)
      : begin(std::min(whole, static_cast<std::size_t>(index) * step)), bytes(std::min(step, whole - begin)) {}
};

}  // namespace phalanx::shared_memory
