// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/hierarchy.h"
#include "framework/comm/part_layout.h"

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

/// Root's elements to all of level.scope, blocking; `root` is a rank of scope. P ranks in N groups, n bytes.
///
/// Cartesian, L ranks in each group: broadcast inside root's group; then rank i of it broadcasts slice i to the ranks i
/// of all groups, all L at the same time; all-gather inside the other groups.
///   between groups: n bytes reach each group, and root's group sends L times what inter's broadcast of n / L sends
/// Tree, and below kSlicedBytes: broadcast inside root's group, among the leaders, inside the other groups.
///
/// If intra and inter are of two worlds, the tensor travels in pieces of kPieceBytes. Works in the tensor itself.
void broadcast(const Level& level, const at::Tensor& tensor, int root);

}  // namespace phalanx::hierarchical
