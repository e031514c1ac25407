// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/sync/synchronizers.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Where the ranks of a group are, as far as it matters for how they agree.
struct RankPlacement {
  int ranks = 1;
  bool shares_memory = true;
  bool one_numa_node = true;  // none of them may run outside of it
};

/// Collective; the same on all ranks.
RankPlacement placement_of(Communicator& group);

/// What `strategy: auto` stands for: of the exact strategies the one that suits where the ranks are. Nothing is
/// measured, so that runs on ranks that lie alike agree alike, to the bit.
///
///   one rank                                single
///   memory in common, in one NUMA node      sharded, with one copy of the parameters
///   memory in common, in several            all_reduce: each rank has all parameters near to it
///   no memory in common                     overlapped
Synchronizers::Choice suitable_strategy(const RankPlacement& placement);

}  // namespace phalanx
