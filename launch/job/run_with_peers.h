// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/job/run_in_world.h"
#include "launch/job/world.h"

// Runs a rank in one world after the other, while others are lost and newcomers take their places
// (faults.on_lost_rank). The functions fill the fields of RankRun from `presence` on, return the exit status of the
// rank, and throw the exception that ends it.
namespace phalanx {

/// Runs a rank with which the job begins. `connections` are those of all ranks. If the config says so, the rank goes on
/// with the ranks that are left when others are lost.
int run_with_peers(RankRun& run, Connections connections);

/// Runs a process that takes the place of a lost rank (StartedRank::newcomer), once the others let it take part.
int run_newcomer(RankRun& run);

}  // namespace phalanx
