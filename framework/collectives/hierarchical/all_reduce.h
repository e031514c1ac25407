// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/hierarchy.h"

namespace phalanx::hierarchical {

/// All-reduce in place over level.scope, blocking. P ranks in N groups, n bytes.
///
/// Cartesian, L ranks in each group: reduce-scatter inside the group, so that rank i has slice i; all-reduce of slice i
/// among the ranks i of all groups; all-gather inside the group (Mikami et al., Massively Distributed SGD, 2018; Cho et
/// al., BlueConnect, 2019). All L ranks of a group send at the same time.
///   between groups: each group sends n times what inter's all-reduce sends per byte, at the least 2 (N - 1) / N n
///   inside groups:  2 (L - 1) / L n per rank
/// Tree, and below kSlicedBytes: reduce to the leader, all-reduce among leaders, broadcast.
///   between groups: the same bytes, all by one rank
///
/// Where intra and inter are of two worlds, a message goes by pieces of kPieceBytes. Cartesian, and up to
/// Exchange::kMostGroups groups, they are exchanged (exchange.h): three pieces are under way at a time, so the messages
/// of one travel while another is inside its group, and the network need not wait for memory. With more groups, and by
/// leaders, that takes a progress thread of intra's. Works in the tensor itself; an exchange keeps what it has received
/// of two pieces.
///
/// All ranks get bitwise the same result. Groups are combined after ranks: that is the order of the ranks only where
/// groups are runs of ranks, and an `op` that does not commute is refused elsewhere (std::invalid_argument).
void all_reduce(const Level& level, const at::Tensor& tensor, const Reduction& op);

}  // namespace phalanx::hierarchical
