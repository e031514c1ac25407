// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/experiment_config.h"
#include "framework/comm/store/store.h"
#include "launch/agents/agent_command.h"
#include "launch/failure/verdict.h"
#include "launch/failure/wrong_result.h"
#include "launch/job/launch_method.h"

namespace phalanx {

/// The settings of a second launch, after a job has failed.
struct Relaunch {
  Seconds delay{0};  // to wait before
  int ranks = 1;
  std::vector<std::string> hosts{};  // launch.hosts that are left
  std::string notice{};              // what a person should know, without the checkpoint
  std::vector<int> wrong_ranks{};    // ranks that have computed wrongly, if the ranks keep their numbers
};

/// Decides whether a job that has failed is started again, as section `launch` says: how often, how soon, and without
/// which hosts. A host to which failures point is left out after launch.exclude_after of them (but not by those with
/// Failure::spares_host), and at once if it does not answer any more; the number of ranks falls in proportion. Each
/// wrong result of its ranks counts as a failure, also if it was repaired. On a single host, a job ends that has had so
/// many of them, since nothing can replace the host. A job is not started again with fewer ranks than faults.min_ranks.
class RelaunchPolicy {
 public:
  /// `answers`: returns true if ranks can be started on a host. Asked only if a job failed for no reason of its ranks.
  RelaunchPolicy(const ExperimentConfig& config, std::function<bool(const std::string& host)> answers);

  /// Returns how to start the job again, or nullopt if it has to end with this verdict. `newest_step`: step of the
  /// newest checkpoint, or -1. `wrong`: the results that ranks have noted since the last call; if the last one of a
  /// rank has ended the run, it is the cause of the verdict, too. A job that an exception of a rank ended twice in the
  /// same way, without a checkpoint in between, has to end: it would fail in the same way forever. So does a job for
  /// which hosts have room for fewer ranks than faults.min_ranks.
  std::optional<Relaunch> next(const Verdict& verdict, std::int64_t newest_step,
                               const std::vector<WrongResult>& wrong = {});

  /// Returns why next() has returned nullopt for a failure, or an empty string if there is nothing to add to it.
  const std::string& why_not() const { return why_not_; }

  /// Returns true if next() has returned nullopt because fewer ranks than faults.min_ranks are left. The job then ends
  /// with kTooFewRanks.
  bool too_few_ranks() const { return too_few_ranks_; }

 private:
  bool repeats(const Verdict& verdict, std::int64_t newest_step);
  void count_wrong(const std::vector<WrongResult>& wrong);
  bool is_only_host_wrong();
  std::vector<std::string> hosts_to_leave_out(const Verdict& verdict, const std::vector<WrongResult>& wrong);
  std::string described(const std::vector<std::string>& hosts) const;
  bool leave_out(const std::vector<std::string>& hosts);

  LaunchConfig launch_;
  std::int64_t min_ranks_;
  std::int64_t ranks_of_replica_;  // ranks that hold one copy of the model together
  std::function<bool(const std::string&)> answers_;
  std::int64_t restarts_ = 0, fruitless_ = 0;       // so far; those since the last checkpoint
  std::map<std::string, std::int64_t> failures_{};  // by host
  std::map<std::string, std::int64_t> wrong_{};     // wrong results by host, as ranks report it
  std::vector<int> wrong_ranks_{};
  std::string last_message_{};
  std::int64_t last_step_ = -1;
  std::string why_not_{};
  bool too_few_ranks_ = false;
};

/// Waits, unless this process gets SIGINT, SIGTERM, SIGHUP or SIGUSR1 in the meantime. Returns false if it does. Must
/// be called while the process has one thread.
bool wait_before_relaunch(Seconds delay);

/// Returns true if a command can be run on the host, within 10 s: as agents are started, and otherwise as mpirun would.
bool host_answers(const std::string& host, LaunchMethod method, Reach reach = Reach::kSsh);

/// Returns true if a launcher or a batch system has started this job before: torchrun (TORCHELASTIC_RESTART_COUNT) or
/// Slurm (SLURM_RESTART_COUNT). Such a job resumes, if it is told in which folder it runs.
bool started_before();

}  // namespace phalanx
