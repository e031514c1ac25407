// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/watch/step_clock.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Seconds of one step over all ranks: the mean, and whose are least and most (of equals, the first rank's).
struct RankSpread {
  double mean = 0, least = 0, most = 0;
  int least_rank = 0, most_rank = 0;
};

/// Where the time of steps goes, on all ranks.
///
/// Ranks that train together finish their steps together: those that are done first wait for the last one, and that
/// shows as their communication. So the straggler is the rank with the most work of its own: data, forward, backward
/// and update. Hooks are left out, because they meet other ranks too (votes, meters). With train.sync_batch_norm
/// forward and backward meet them as well, so that ranks look more even than they are.
struct StepTimes {
  std::int64_t steps = 0;
  std::vector<std::array<double, kPhases>> ranks;  // mean seconds of a step by phase, of each rank

  RankSpread phase(Phase phase) const;
  RankSpread own_work() const;
  RankSpread whole() const;

  /// "rank 2 is the straggler: its own work takes 38 % longer than that of rank 0"; where ranks are within a tenth of
  /// each other or alone, that nobody is.
  std::string straggler() const;
};

/// What `mine` is on all ranks of `group`. Collective.
StepTimes across_ranks(const PhaseTimes& mine, Communicator& group);

}  // namespace phalanx
