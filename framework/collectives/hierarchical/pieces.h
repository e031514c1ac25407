// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/mesh/hierarchy.h"

namespace phalanx::hierarchical {

/// Returns true if operations on the level's intra can run while this rank waits for its inter. This is so if they
/// belong to two worlds, each with its own queue of operations, such as shared memory inside hosts and a network
/// between them.
bool overlaps(const Level& level);

/// Returns views of a tensor's elements, one after the other. A collective processes them in turn: while one piece is
/// sent between groups, others are processed inside them. Returns a single piece if steps would not overlap.
std::vector<at::Tensor> pieces_of(const Level& level, const at::Tensor& tensor);

/// Messages shorter than this are not cut into slices; only the leaders then communicate between groups.
inline constexpr std::int64_t kSlicedBytes = 8 << 10;

inline constexpr std::int64_t kPieceBytes = 1 << 20;

/// Returns true if each rank sends a slice of the message between groups.
bool slices(const Level& level, const at::Tensor& tensor);

}  // namespace phalanx::hierarchical
