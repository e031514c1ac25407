// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/collectives/hierarchical/staging.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {

/// All-reduces in place over level.scope; blocks. P ranks in N groups, n bytes.
///
/// Cartesian, with L ranks in each group: reduce-scatter inside the group, so that rank i has slice i; all-reduce of
/// slice i among the ranks i of all groups; all-gather inside the group (Mikami et al., Massively Distributed SGD,
/// 2018; Cho et al., BlueConnect, 2019). All L ranks of a group send at the same time.
///   between groups: n times the bytes that inter's all-reduce sends per byte, at least 2 (N - 1) / N n, per group
///   inside groups:  2 (L - 1) / L n per rank
/// Tree, and below kSlicedBytes: reduce to the leader, all-reduce among the leaders, broadcast.
///   between groups: the same bytes, all sent by one rank
///
/// If intra and inter belong to two worlds, a message is cut into pieces of kPieceBytes. In a cartesian level of at
/// most Exchange::kMaxGroups groups whose inter has no further levels, the pieces are exchanged (exchange.h). Three of
/// them are in flight at a time, so that the messages of one piece travel while another piece is reduced inside its
/// group, and the network need not wait for memory. With more groups, or through leaders, this overlap needs a progress
/// thread of intra. The operation works in the tensor itself; an exchange also keeps the received data of two pieces.
///
/// All ranks get bitwise the same result. Ranks are combined inside their groups first and then group by group. This is
/// rank order only if groups are runs of consecutive ranks. Otherwise an `op` that does not commute is refused with
/// std::invalid_argument.
void all_reduce(const Level& level, const at::Tensor& tensor, const Reduction& op);

/// Reduce-scatters over level.scope; blocks. Part r of the combined `input` of all ranks goes to `output` of rank r,
/// which has parts.count(r) elements. P ranks in N groups, n bytes of input.
///
/// Cartesian, with L ranks in each group: reduce-scatter inside the group, so that rank i has the parts of the ranks i
/// of all groups; then reduce-scatter of these parts among the ranks i, for all i at the same time.
///   between groups: each group sends the parts of the N - 1 other groups, (N - 1) / N n if parts are equal
/// Tree: reduce to the leader, reduce-scatter among the leaders, scatter inside the group.
///
/// The input is processed in pieces of kPieceBytes, which are sorted into scratch memory. Ranks are combined in the
/// same order as in all_reduce, with the same requirement on `op`.
void reduce_scatter(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                    const Reduction& op, const PartLayout& parts);

/// All-gathers over level.scope; blocks. The `input` of every rank, of parts.count(rank) elements, goes to `output` in
/// rank order. P ranks in N groups, n bytes of output.
///
/// Cartesian, with L ranks in each group: all-gather among the ranks i of all groups, for all i at the same time; then
/// all-gather inside the group.
///   between groups: each group sends its parts to N - 1 other groups, (N - 1) / N n if parts are equal
/// Tree: gather to the leader, all-gather among the leaders, broadcast inside the group.
///
/// The output is produced in pieces of kPieceBytes in scratch memory, which are then sorted into rank order.
void all_gather(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                const PartLayout& parts);

/// Broadcasts the root's elements over level.scope; blocks. `root` is a rank of scope. P ranks in N groups, n bytes.
///
/// Cartesian, with L ranks in each group: broadcast inside the root's group; then rank i of that group broadcasts slice
/// i to the ranks i of all groups, all L at the same time; then all-gather inside the other groups.
///   between groups: n bytes to each group; the root's group sends L times what inter's broadcast of n / L bytes does
/// Tree, and below kSlicedBytes: broadcast inside the root's group, among the leaders, and inside the other groups.
///
/// If intra and inter belong to two worlds, the tensor travels in pieces of kPieceBytes. The operation works in the
/// tensor itself.
void broadcast(const Level& level, const at::Tensor& tensor, int root);

}  // namespace phalanx::hierarchical
