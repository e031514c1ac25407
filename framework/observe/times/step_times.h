// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// Seconds of one step over all ranks: the mean, and the least and the most with their ranks (the first one if several
/// are equal).
struct RankSpread {
  double mean = 0, least = 0, most = 0;
  int least_rank = 0, most_rank = 0;
};

/// The time of steps by phase, on all ranks.
///
/// Ranks that train together finish their steps together: ranks that are done first wait for the last one, and this
/// time counts as their communication. So the straggler is the rank with the most work: data, forward, backward and
/// update. Hooks do not count as work, because they also communicate with other ranks (votes, meters). With
/// train.sync_batch_norm forward and backward communicate as well, so that ranks look more balanced than they are.
struct StepTimes {
  std::int64_t steps = 0;
  std::vector<std::array<double, kPhases>> ranks;  // mean seconds of a step by rank and phase

  RankSpread phase(Phase phase) const;
  RankSpread own_work() const;
  RankSpread whole() const;

  /// Returns a sentence such as "rank 2 is the straggler: its own work takes 38 % longer than that of rank 0". If there
  /// is only one rank, or if all are within a tenth of each other, it says that there is no straggler.
  std::string straggler() const;
};

/// Returns the mean times of a step on all ranks of `group`, where `mine` has the times of this rank. Collective.
StepTimes across_ranks(const PhaseTimes& mine, Communicator& group);

}  // namespace phalanx
