// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/hierarchy.h"
#include "framework/comm/part_layout.h"

namespace phalanx::hierarchical {

/// Reduce-scatter over level.scope, blocking: part r of all ranks' `input` combined, in rank r's `output`, of
/// parts.count(r) elements. P ranks in N groups, n bytes of input.
///
/// Cartesian, L ranks in each group: reduce-scatter inside the group, so that rank i has the parts of the ranks i of
/// all groups; then reduce-scatter of these among the ranks i, for all i at the same time.
///   between groups: each group sends what is for the N - 1 others, (N - 1) / N n where parts are equal
/// Tree: reduce to the leader, reduce-scatter among leaders, scatter inside the group.
///
/// In pieces of kPieceBytes of input, sorted into scratch memory. The order of combining is that of all_reduce, and so
/// is what it asks of `op`.
void reduce_scatter(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                    const Reduction& op, const PartLayout& parts);

}  // namespace phalanx::hierarchical
