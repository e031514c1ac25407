// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Returns the number of ranks of which a replica consists.
std::int64_t ranks_per_replica(const MeshShape& shape);

/// A rank that is left, but whose replica is not: it has a part of the model that is of no use without the others.
struct Stranded {
  int rank = 0;
  int lost = 0;  // the first rank that its replica has lost
};

/// Returns the ranks of broken replicas, in their order, after some ranks of a mesh were lost. `before` has all of its
/// ranks in their order, in which each `ranks_per_replica` ranks are a replica (Axis::kData is the outermost axis), and
/// `left` has those that are left. The result and the two lists have ranks under names of the caller's choice, such as
/// their numbers in the job. Without other axes than the data axis, nobody is stranded.
std::vector<Stranded> stranded_ranks(const std::vector<int>& before, const std::vector<int>& left,
                                     std::int64_t ranks_per_replica);

}  // namespace phalanx
