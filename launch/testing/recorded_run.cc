// SPDX-License-Identifier: Apache-2.0
#include "launch/testing/recorded_run.h"

#include <memory>

#include "engine/config/check.h"
#include "framework/base/config/config.h"
#include "framework/collectives/recording/replay.h"
#include "launch/testing/thread_ranks.h"

namespace phalanx::testing {

std::vector<int> RecordedRun::record_run(int ranks, std::vector<std::string> changes) {
  changes.push_back("framework.record=" + recording());
  changes.push_back("launch.ranks=" + std::to_string(ranks));
  Job job{.quiet = true};
  config::load_text(job.config, config_, "t.yaml", changes);
  check(job.config);
  job.run_dir = scratch_.path("run");
  return run_as_threads(job, RunFolder::create(job.run_dir), ranks);
}

ReplayResult RecordedRun::replay(int rank, const std::vector<std::string>& changes, std::int64_t until) {
  auto recorded = std::make_unique<recording::Recording>(recording(), rank);
  Job job{.quiet = true};
  config::load_text(job.config, recorded->header().config, "recorded", changes);
  const RunFolder folder = RunFolder::create(scratch_.path("replay" + std::to_string(replays_++)));
  return replay_rank(job, std::make_shared<recording::Replay>(std::move(recorded)), folder, until);
}

}  // namespace phalanx::testing
