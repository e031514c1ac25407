// SPDX-License-Identifier: Apache-2.0
#include "launch/job/started_rank.h"

#include <chrono>
#include <cstdio>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/local/print_to_console.h"
#include "launch/rank/launcher_watch.h"
#include "launch/signals/stop_signal.h"

namespace phalanx {
namespace {

// A rank that may become the first one keeps its output for this.
void silence_other_ranks(int rank, bool may_become_first) {
  if (rank == 0) return;
  if (may_become_first) save_console();
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw Error("cannot open /dev/null");
}

}  // namespace

StartedRank thread_rank(int rank, int ranks, const RunFolder& folder, const SharedByThreads& shared) {
  const RankInfo rank_info{.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
  return {.launched = {.launcher = "local", .rank_info = rank_info}, .folder = folder, .shared = &shared};
}

StartedRank forked_rank(const RunFolder& folder) {
  const auto newcomer = environment(kNewcomer);
  return {.launched = detect_launch_environment().value(),
          .folder = folder,
          .newcomer = newcomer ? std::optional(parse_newcomer(*newcomer)) : std::nullopt};
}

StartedRank joined_rank(const Job& job, const LaunchEnvironment& launched) {
  end_with_launcher(launched);
  const int rank = launched.rank_info.rank;
  const bool ours = environment("PHALANX_LAUNCHER").has_value();
  install_stop_signal(ours ? StopOn::kLauncher : StopOn::kInterrupt, stop_policy_of(job), !ours && rank == 0);
  silence_other_ranks(rank, job.goes_on());
  StartedRank started{.launched = launched};
  if (ours) started.folder = RunFolder(job.run_dir);
  return started;
}

StopPolicy stop_policy_of(const Job& job) {
  const std::chrono::duration<double> grace(job.config.launch.grace);
  return {.after_step = job.saves, .grace = std::chrono::ceil<std::chrono::milliseconds>(grace)};
}

}  // namespace phalanx
