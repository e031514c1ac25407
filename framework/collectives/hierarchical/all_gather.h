// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/hierarchy.h"
#include "framework/comm/part_layout.h"

namespace phalanx::hierarchical {

/// All-gather over level.scope, blocking: every rank's `input`, of parts.count(rank) elements, in `output` in rank
/// order. P ranks in N groups, n bytes of output.
///
/// Cartesian, L ranks in each group: all-gather among the ranks i of all groups, for all i at the same time; then
/// all-gather inside the group.
///   between groups: each group sends what it holds to N - 1 others, (N - 1) / N n where parts are equal
/// Tree: gather to the leader, all-gather among leaders, broadcast inside the group.
///
/// In pieces of kPieceBytes of output, which are sorted into the order of the ranks from scratch memory.
void all_gather(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                const PartLayout& parts);

}  // namespace phalanx::hierarchical
