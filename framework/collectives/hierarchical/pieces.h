// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/hierarchy.h"

namespace phalanx::hierarchical {

/// Whether operations on the level's intra can run while its inter is waited for: that is so where they are of two
/// worlds, each with a queue of operations of its own, as shared memory inside hosts and a network between them.
bool overlaps(const Level& level);

/// Views of a tensor's elements, one behind the other, in which a collective takes its steps: while one piece is
/// between groups, others are inside them. One piece, where steps would not overlap.
std::vector<at::Tensor> pieces_of(const Level& level, const at::Tensor& tensor);

/// Below this, slices are not worth a message of their own, and leaders alone talk between groups.
inline constexpr std::int64_t kSlicedBytes = 8 << 10;

inline constexpr std::int64_t kPieceBytes = 1 << 20;

/// Whether each rank carries a slice of a message of so many bytes between groups.
bool slices(const Level& level, const at::Tensor& tensor);

}  // namespace phalanx::hierarchical
