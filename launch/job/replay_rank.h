// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/run_folder.h"
#include "framework/collectives/recording/replay.h"
#include "launch/job/job.h"

namespace phalanx {

/// The result of a replay that did not differ from its recording.
struct ReplayResult {
  std::int64_t first_step = 0;  // the replay began after this step, from a checkpoint; 0: at the beginning
  std::int64_t last_step = 0;   // steps that the run had completed at its end
  std::int64_t operations = 0;  // that were compared
  bool stopped = false;         // the replay was to end after this step
  std::string ended{};          // why the recorded run did not end well; empty: it did, with these parameters
};

/// Runs one rank of a recorded job alone, in this process, and compares it with the recording. `job.config` is the
/// recorded one. The rank writes to `folder`, never to the folder of the recorded run. Parameter servers are not
/// needed, since their answers are in the recording. `until`: the step after which the replay ends; 0: the end of the
/// recording. Throws ReplayDifference at the first difference, and ConfigError for a rank that was a parameter server;
/// otherwise a replay throws what run_experiment() throws for other reasons than the recorded run had, such as missing
/// data.
ReplayResult replay_rank(const Job& job, const std::shared_ptr<recording::Replay>& replay, const RunFolder& folder,
                         std::int64_t until = 0);

}  // namespace phalanx
