// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/strategies/strategies.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Facts about the location of a group's ranks that affect the choice of a strategy.
struct RankPlacement {
  int ranks = 1;
  bool shares_memory = true;
  bool one_numa_node = true;  // no rank may run outside of that node
};

/// Returns the placement of a group, the same on all ranks. Collective.
RankPlacement placement_of(Communicator& group);

/// Returns the strategy that `strategy: auto` selects: the exact strategy that suits the placement of the ranks.
/// Nothing is measured, so runs on ranks with the same placement agree bit for bit.
///
///   one rank                                  single
///   shared memory, in one NUMA node           sharded, with one copy of the parameters
///   shared memory, in several NUMA nodes      all_reduce: each rank has all parameters in nearby memory
///   no shared memory                          overlapped
Strategies::Choice suitable_strategy(const RankPlacement& placement);

}  // namespace phalanx
