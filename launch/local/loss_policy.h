// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launch/local/child_ranks.h"
#include "launch/local/launch_local.h"
#include "launch/local/lost_processes.h"
#include "launch/local/rank_notes.h"
#include "launch/local/supervisor.h"

// These functions make the policies by which a launcher reacts to the ends of its ranks. Their arguments must outlive
// the supervisor.
namespace phalanx {

/// Returns the policy of a job on this host, whose lost ranks are not replaced. Losses are added to `lost`.
Supervisor::Policy policy_of(const LocalLaunch& options, const ChildRanks& children, LostProcesses& lost);

/// Returns true if the others go on without a process that has failed, and lets the ranks know of its end. For jobs
/// that replace lost ranks.
bool goes_on_without(const Supervisor::End& end, const ChildRanks& children, const RankNotes& notes,
                     LostProcesses& lost);

/// Lets the ranks know of the end of a process that has not failed and was to take part, or has taken part. Returns
/// true if it has left the others, who go on without it (`is_lost`). For jobs that replace lost ranks.
bool has_left(const Supervisor::End& end, const ChildRanks& children, const RankNotes& notes,
              const std::function<bool(int child)>& is_lost);

}  // namespace phalanx
