// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/hierarchy.h"

namespace phalanx::hierarchical {

/// Root's elements to all of level.scope, blocking; `root` is a rank of scope. P ranks in N groups, n bytes.
///
/// Cartesian, L ranks in each group: broadcast inside root's group; then rank i of it broadcasts slice i to the ranks i
/// of all groups, all L at the same time; all-gather inside the other groups.
///   between groups: n bytes reach each group, and root's group sends L times what inter's broadcast of n / L sends
/// Tree, and below kSlicedBytes: broadcast inside root's group, among the leaders, inside the other groups.
///
/// Where intra and inter are of two worlds, in pieces of kPieceBytes. Works in the tensor itself.
void broadcast(const Level& level, const at::Tensor& tensor, int root);

}  // namespace phalanx::hierarchical
