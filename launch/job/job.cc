// SPDX-License-Identifier: Apache-2.0
#include "launch/job/job.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"
#include "launch/failure/verdict.h"
#include "launch/job/end_command.h"
#include "launch/job/launch_method.h"
#include "launch/job/prepare_folder.h"
#include "launch/job/run_header.h"
#include "launch/job/run_rank.h"
#include "launch/job/started_rank.h"
#include "launch/local/launch_local.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/mpirun/mpirun.h"
#include "launch/signals/stop_signal.h"

namespace phalanx {
namespace {

// Describes the saved state of a job that was ended before it had stopped.
std::string describe_saved_state(const RunFolder& folder) {
  std::vector<Checkpoint> checkpoints;
  try {
    checkpoints = CheckpointFolder(folder.checkpoints()).list([](const std::string&) {});
  } catch (const DataError& error) {
    return std::string("what it has kept is unknown: ") + error.what();
  }
  if (checkpoints.empty()) return "it has no checkpoint, so everything that it has learned is lost";
  return "what it has learned after " + checkpoints.front().path + " is lost; --resume auto continues from there";
}

std::function<std::string()> saved_state_describer(const Job& job, const RunFolder& folder) {
  if (!job.saves) return nullptr;
  return [folder] { return describe_saved_state(folder); };
}

// Returns the backend of ranks that we start ourselves. On several hosts, it depends on how mpirun starts them.
std::string backend_of(const ExperimentConfig& config) {
  if (config.backend != "auto" || !config.launch.hosts.empty()) return config.backend;
  return automatic_backend(config.launch.ranks == 1 ? WorldKind::kOneRank : WorldKind::kOneHost);
}

// Returns a function that runs the command of watch.on_end with what became of the job. Null for jobs that do not
// train.
std::function<void(const Verdict&)> ended_of(const Job& job, const RunFolder& folder) {
  if (job.body) return nullptr;
  return [command = EndCommand(job.config.watch, job.config.name, folder)](const Verdict& verdict) {
    command.run(verdict.status, verdict.cause ? verdict.cause->message : "");
  };
}

MpiLaunch mpi_launch(const Job& job, const RunFolder& folder) {
  MpiLaunch launch{.ranks = static_cast<int>(job.config.launch.ranks),
                   .hosts = job.config.launch.hosts,
                   .log_folder = folder.logs(),
                   .command = job.command,
                   .stop_policy = stop_policy_of(job),
                   .describe_saved = saved_state_describer(job, folder),
                   .ended = ended_of(job, folder)};
  launch.command.push_back("--run_dir=" + folder.path());
  return launch;
}

LocalLaunch local_launch(const Job& job, const RunFolder& folder, bool threads) {
  return {.ranks = static_cast<int>(job.config.launch.ranks),
          .threads = threads,
          .log_folder = folder.logs(),
          .stop_policy = stop_policy_of(job),
          .describe_saved = saved_state_describer(job, folder),
          .ended = ended_of(job, folder)};
}

}  // namespace

int run_job(const Job& job) {
  if (const auto launched = detect_launch_environment()) return run_rank(job, joined_rank(job, *launched));
  const LaunchMethod method = choose_launch_method(job.config);
  refuse_too_many_ranks(job.config.launch);
  if (method == LaunchMethod::kMpirun)
    require_remote_shell(job.config.launch.hosts);  // before the run folder is created
  const ClaimedFolder claimed = prepare_folder(job);
  const RunFolder& folder = claimed.folder;
  const int ranks = static_cast<int>(job.config.launch.ranks);
  print_run_header(job, folder, ranks, backend_of(job.config));
  if (method == LaunchMethod::kMpirun) return launch_mpi(mpi_launch(job, folder));

  std::optional<SharedByThreads> shared;
  LocalLaunch launch = local_launch(job, folder, method == LaunchMethod::kThreads);
  launch.prepare = [&] {
    install_stop_signal(StopOn::kLauncher);
    if (launch.threads) shared = prepare_threads(job, folder);
  };
  return launch_local(launch, [&](int rank) {
    return run_rank(job, shared ? thread_rank(rank, ranks, folder, *shared) : forked_rank(folder));
  });
}

}  // namespace phalanx
