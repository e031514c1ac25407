// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/comm/operations/call.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Axes of a mesh along which the ranks of a group differ, as bits: 1 << axis.
using AxisBits = unsigned;

/// Returns the axes of these ranks of a world with this mesh.
AxisBits axes_of(const MeshShape& shape, const std::vector<int>& ranks);

/// Returns the axes of a set that have more than one rank.
AxisBits axes_of(const MeshShape& shape, AxisSet axes);

/// Returns a name such as "data" or "data+expert".
std::string axes_name(AxisBits axes);

/// Returns the number of ranks that differ along these axes.
std::int64_t ranks_along(const MeshShape& shape, AxisBits axes);

/// Operations of one kind among the ranks that differ along the same axes.
struct OperationKind {
  AxisBits axes = 0;
  Op op = Op::kNone;

  auto operator<=>(const OperationKind&) const = default;
};

struct OperationCount {
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // see bytes_of()

  bool operator==(const OperationCount&) const = default;
};
using OperationCounts = std::map<OperationKind, OperationCount>;

/// Adds an operation, unless it has no axis: then it is an operation of one rank.
void add(OperationCounts& counts, AxisBits axes, Op op, std::int64_t bytes);

/// Adds all operations of `more`.
void add(OperationCounts& counts, const OperationCounts& more);

/// Returns the size of the tensor of an operation: the output of all_gather, the input of reduce_scatter and
/// all_to_all, and the only tensor of other operations. 0 for a barrier.
std::int64_t bytes_of(const Operation& operation);

/// Returns the bytes that one of P ranks sends for operations with this number of bytes: 2 (P - 1) / P of them for
/// all_reduce, (P - 1) / P for reduce_scatter, all_gather and all_to_all, and all of them for broadcast. This is the
/// traffic of algorithms that move the minimum (Thakur, Rabenseifner and Gropp 2005, section 4; framework/collectives).
double wire_bytes(Op op, std::int64_t ranks, std::int64_t bytes);

/// Describes the differences between two counts of the same operations, one per line; empty: there are none.
std::string differences(const MeshShape& shape, const OperationCounts& planned, const OperationCounts& seen);

/// Returns the sums over the ranks of `world` for each kind of operation. Sums are compared because ranks may have
/// all_to_alls of different sizes. Collective over `world`.
OperationCounts over_ranks(const OperationCounts& counts, Communicator& world);

}  // namespace phalanx
