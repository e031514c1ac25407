#include "launch/job/job.h"

#include <algorithm>
#include <string>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch_environment.h"
#include "launch/job/job_setup.h"
#include "launch/job/rank.h"
#include "launch/job/start.h"
#include "launch/job/world.h"
#include "launch/local.h"
#include "launch/mpi.h"
#include "launch/stop_signal.h"

namespace phalanx {
namespace {

enum class Way { kJoin, kThreads, kForks, kMpirun };

Way choose_way(const ExperimentConfig& config, const std::optional<LaunchEnvironment>& launched) {
  if (launched) return Way::kJoin;
  const auto others = selected_backends(config);
  const bool uses_mpi = config.backend == "mpi" || std::ranges::find(others, "mpi") != others.end();
  if (config.launch.with == "mpi" || !config.launch.hosts.empty()) return Way::kMpirun;
  if (uses_mpi && config.launch.ranks > 1 && config.launch.with == "auto") return Way::kMpirun;
  if (config.launch.ranks == 1 || config.backend == "inproc") return Way::kThreads;
  if (uses_mpi) {
    throw ConfigError("backend mpi needs processes that mpirun started; set launch.with: mpi (or auto)");
  }
  return Way::kForks;
}

// Of ranks that we start ourselves; on several hosts it depends on what mpirun makes of them.
std::string backend_of(const ExperimentConfig& config) {
  if (config.backend != "auto" || !config.launch.hosts.empty()) return config.backend;
  return config.launch.ranks == 1 ? "inproc" : "shm";
}

RunFolder begin(Job& job) {
  auto folder = prepare_folder(job);
  introduce(job, folder, static_cast<int>(job.config.launch.ranks), backend_of(job.config));
  return folder;
}

int launch_forks(Job& job) {
  const auto folder = begin(job);
  const LocalLaunch options{.ranks = static_cast<int>(job.config.launch.ranks), .log_folder = folder.logs()};
  return launch_local(options, [&](int) {
    install_stop_signal(StopOn::kLauncher);
    return run_joined_rank(job, folder, *detect_launch_environment());
  });
}

// In a process of their own, so that its death is reported as that of any rank.
int launch_threads(Job& job) {
  const auto folder = begin(job);
  const LocalLaunch options{
      .ranks = 1, .log_folder = folder.logs(), .reported_ranks = static_cast<int>(job.config.launch.ranks)};
  return launch_local(options, [&](int) {
    install_stop_signal(StopOn::kLauncher);
    return run_threads(job, folder);
  });
}

int launch_mpirun(Job& job) {
  const auto folder = begin(job);
  MpiLaunch options{.ranks = static_cast<int>(job.config.launch.ranks),
                    .hosts = job.config.launch.hosts,
                    .log_folder = folder.logs(),
                    .command = job.command};
  options.command.push_back("--run_dir=" + folder.path());
  return launch_mpi(options);
}

}  // namespace

int run_job(Job& job) {
  const auto launched = detect_launch_environment();
  switch (choose_way(job.config, launched)) {
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
