// SPDX-License-Identifier: Apache-2.0
#include "launch/job/job.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "framework/base/cores.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch_environment.h"
#include "launch/job/job_setup.h"
#include "launch/job/rank.h"
#include "launch/job/world.h"
#include "launch/local.h"
#include "launch/mpi.h"
#include "launch/mpirun.h"
#include "launch/stop_signal.h"

namespace phalanx {
namespace {

enum class Way { kJoin, kThreads, kForks, kMpirun };

Way choose_way(const ExperimentConfig& config, const std::optional<LaunchEnvironment>& launched) {
  if (launched) return Way::kJoin;
  const auto is_mpi = [](const std::string& backend) { return backend_traits(backend).mpi; };
  const bool uses_mpi = is_mpi(config.backend) || std::ranges::any_of(selected_backends(config), is_mpi);
  if (config.launch.with == "mpi" || !config.launch.hosts.empty()) return Way::kMpirun;
  if (uses_mpi && config.launch.ranks > 1 && config.launch.with == "auto") return Way::kMpirun;
  if (config.launch.ranks == 1 || backend_traits(config.backend).threads) return Way::kThreads;
  if (uses_mpi) {
    throw ConfigError("backend mpi needs processes that mpirun started; set launch.with: mpi (or auto)");
  }
  return Way::kForks;
}

// Describes the saved state of a job that was ended before it had stopped.
std::string kept(const RunFolder& folder) {
  std::vector<Checkpoint> checkpoints;
  try {
    checkpoints = CheckpointFolder(folder.checkpoints()).list([](const std::string&) {});
  } catch (const DataError& error) {
    return std::string("what it has kept is unknown: ") + error.what();
  }
  if (checkpoints.empty()) return "it has no checkpoint, so everything that it has learned is lost";
  return "what it has learned after " + checkpoints.front().path + " is lost; --resume auto continues from there";
}

std::function<std::string()> kept_of(const Job& job, const RunFolder& folder) {
  if (!job.saves) return nullptr;
  return [folder] { return kept(folder); };
}

// More ranks would mostly wait for a core, and block everything else on the host. The cores of other hosts are unknown.
void refuse_too_many_ranks(const LaunchConfig& launch) {
  constexpr int kMostPerCore = 32;
  const int cores = usable_cores();
  if (launch.oversubscribe || !launch.hosts.empty() || launch.ranks <= kMostPerCore * cores) return;
  throw ConfigError({{.origin = "config",
                      .key = "launch.ranks",
                      .message = std::to_string(launch.ranks) + " ranks on " + std::to_string(cores) +
                                 (cores == 1 ? " core are" : " cores are") + " more than " +
                                 std::to_string(kMostPerCore) + " per core; start at most " +
                                 std::to_string(kMostPerCore * cores) + ", or set launch.oversubscribe: true"}});
}

// Returns the backend of ranks that we start ourselves. On several hosts, it depends on how mpirun starts them.
std::string backend_of(const ExperimentConfig& config) {
  if (config.backend != "auto" || !config.launch.hosts.empty()) return config.backend;
  return automatic_backend(config.launch.ranks == 1 ? World::kOneRank : World::kOneHost);
}

RunFolder begin(Job& job) {
  auto folder = prepare_folder(job);
  introduce(job, folder, static_cast<int>(job.config.launch.ranks), backend_of(job.config));
  return folder;
}

int launch_forks(Job& job) {
  const auto folder = begin(job);
  const LocalLaunch options{.ranks = static_cast<int>(job.config.launch.ranks),
                            .log_folder = folder.logs(),
                            .stopping = stopping_of(job),
                            .kept = kept_of(job, folder)};
  return launch_local(options, [&](int) {
    install_stop_signal(StopOn::kLauncher);
    return run_joined_rank(job, folder, *detect_launch_environment());
  });
}

// The threads run in their own process, so that its death is reported like the death of any rank.
int launch_threads(Job& job) {
  const auto folder = begin(job);
  const LocalLaunch options{.ranks = 1,
                            .log_folder = folder.logs(),
                            .reported_ranks = static_cast<int>(job.config.launch.ranks),
                            .stopping = stopping_of(job),
                            .kept = kept_of(job, folder)};
  return launch_local(options, [&](int) {
    install_stop_signal(StopOn::kLauncher);
    return run_threads(job, folder);
  });
}

int launch_mpirun(Job& job) {
  require_way_to(job.config.launch.hosts);  // before the run folder is created
  const auto folder = begin(job);
  MpiLaunch options{.ranks = static_cast<int>(job.config.launch.ranks),
                    .hosts = job.config.launch.hosts,
                    .log_folder = folder.logs(),
                    .command = job.command,
                    .stopping = stopping_of(job),
                    .kept = kept_of(job, folder)};
  options.command.push_back("--run_dir=" + folder.path());
  return launch_mpi(options);
}

}  // namespace

int run_job(Job& job) {
  const auto launched = detect_launch_environment();
  const Way way = choose_way(job.config, launched);
  if (way != Way::kJoin) refuse_too_many_ranks(job.config.launch);
  switch (way) {
    case Way::kMpirun:
      return launch_mpirun(job);
    case Way::kForks:
      return launch_forks(job);
    case Way::kThreads:
      return launch_threads(job);
    case Way::kJoin:
      break;
  }
  return join(job, *launched);
}

}  // namespace phalanx
