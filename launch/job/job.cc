// SPDX-License-Identifier: Apache-2.0
#include "launch/job/job.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/hooks/restarts.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/init_method.h"
#include "launch/agents/agent.h"
#include "launch/agents/beats.h"
#include "launch/agents/launch_agents.h"
#include "launch/agents/share.h"
#include "launch/exit_status.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/loss.h"
#include "launch/failure/verdict.h"
#include "launch/failure/wrong_result.h"
#include "launch/job/end_command.h"
#include "launch/job/launch_method.h"
#include "launch/job/launcher_refusals.h"
#include "launch/job/prepare_folder.h"
#include "launch/job/relaunch.h"
#include "launch/job/run_header.h"
#include "launch/job/run_rank.h"
#include "launch/job/started_rank.h"
#include "launch/local/launch_local.h"
#include "launch/local/print_to_console.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/mpirun/mpirun.h"
#include "launch/mpirun/watched_rank.h"
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

MpiLaunch mpi_launch(const Job& job, const RunFolder& folder) {
  MpiLaunch launch{.ranks = static_cast<int>(job.config.launch.ranks),
                   .hosts = job.config.launch.hosts,
                   .log_folder = folder.logs(),
                   .mpirun_options = job.config.launch.mpirun_options,
                   .pass_variables = job.config.launch.pass_variables,
                   .command = job.command,
                   .stop_policy = stop_policy_of(job),
                   .describe_saved = saved_state_describer(job, folder),
                   .goes_on = job.goes_on()};
  launch.command.push_back("--run_dir=" + folder.path());
  return launch;
}

// Returns the number of processes that may be started for lost ranks.
int replacements(const Job& job) {
  return job.config.faults.replaces() && !job.body ? static_cast<int>(job.config.faults.replacements) : 0;
}

// Returns true if hosts may join the job. Its ranks have agents then, also on a single host.
bool lets_join(const Job& job) { return job.config.faults.lets_join(job.config.launch.ranks) && !job.body; }

LaunchMethod launch_method(const Job& job) {
  const LaunchMethod method = choose_launch_method(job.config);
  return lets_join(job) ? LaunchMethod::kAgents : method;
}

Reach reach_of(const LaunchConfig& launch) { return launch.with == "srun" ? Reach::kSrun : Reach::kSsh; }

std::vector<HostShare> host_shares(const LaunchConfig& launch) {
  const auto hosts = launch.hosts.empty() ? std::vector<std::string>{"localhost"} : launch.hosts;
  return divide_among_hosts(hosts, static_cast<int>(launch.ranks));
}

AgentsLaunch agents_launch(const Job& job, const RunFolder& folder) {
  const auto& launch = job.config.launch;
  AgentsLaunch agents{.shares = host_shares(launch),
                      .reach = reach_of(launch),
                      .log_folder = folder.logs(),
                      .pass_variables = launch.pass_variables,
                      .command = job.command,
                      .stop_policy = stop_policy_of(job),
                      .describe_saved = saved_state_describer(job, folder),
                      .goes_on = job.goes_on(),
                      .lease = lease_length(job.goes_on(), job.config.faults.lost_after),
                      .replacements = replacements(job),
                      .replacement_delay = launch.restart_delay,
                      .join = {.max_ranks = lets_join(job) ? static_cast<int>(job.config.faults.max_ranks) : 0,
                               .run_folder = folder.path(),
                               .interface = job.config.framework.interface}};
  agents.command.push_back("--run_dir=" + folder.path());
  return agents;
}

LocalLaunch local_launch(const Job& job, const RunFolder& folder, bool threads) {
  return {.ranks = static_cast<int>(job.config.launch.ranks),
          .threads = threads,
          .log_folder = folder.logs(),
          .stop_policy = stop_policy_of(job),
          .describe_saved = saved_state_describer(job, folder),
          .goes_on = job.goes_on(),
          .lost_after = job.config.faults.lost_after,
          .replacements = threads ? 0 : replacements(job),
          .replacement_delay = job.config.launch.restart_delay};
}

// Starts all ranks, and waits until they have ended.
Verdict run_once(const Job& job, const RunFolder& folder, LaunchMethod method) {
  if (method == LaunchMethod::kMpirun) return run_mpi(mpi_launch(job, folder));
  if (method == LaunchMethod::kAgents) return run_agents(agents_launch(job, folder));
  const int ranks = static_cast<int>(job.config.launch.ranks);
  std::optional<SharedByThreads> shared;
  LocalLaunch launch = local_launch(job, folder, method == LaunchMethod::kThreads);
  launch.prepare = [&] {
    install_stop_signal(StopOn::kLauncher);
    if (launch.threads) shared = prepare_threads(job, folder);
  };
  return run_local(launch, [&](int rank) {
    return run_rank(job, shared ? thread_rank(rank, ranks, folder, *shared) : forked_rank(folder));
  });
}

// Runs the ranks of this host for the launcher that has started this process as an agent.
int run_as_agent(const Job& job, const AgentOrder& order) {
  const RunFolder folder(job.run_dir);
  LocalLaunch launch = local_launch(job, folder, /*threads=*/false);
  launch.prepare = [] { install_stop_signal(StopOn::kLauncher); };
  return run_agent(launch, order, [&](int) { return run_rank(job, forked_rank(folder)); });
}

// Returns the newest checkpoint of the run, without reading all of it; nullopt: there is none.
std::optional<Checkpoint> newest_checkpoint(const RunFolder& folder) {
  const auto all = CheckpointFolder(folder.checkpoints()).list([](const std::string&) {});
  return all.empty() ? std::nullopt : std::optional(all.front());
}

// Changes the job so that it goes on where the last attempt has left it.
void prepare_relaunch(const Relaunch& again, const std::optional<Checkpoint>& newest, Job& job) {
  auto& resume = job.config.checkpoint.resume;
  if (newest || resume == "none") resume = "auto";
  job.config.launch.ranks = again.ranks;
  job.config.launch.hosts = again.hosts;
  // Ranks that mpirun starts read the config again.
  job.command.push_back("--set=launch.ranks=" + std::to_string(again.ranks));
  job.command.push_back("--resume=" + resume);
}

// Returns the seconds of an attempt that began `seconds` ago in which it computed steps that no checkpoint has.
double lost_of(double seconds, const std::optional<Checkpoint>& newest) {
  const auto age = newest ? age_of(*newest) : std::nullopt;
  return age ? std::clamp(*age, 0.0, seconds) : seconds;
}

// Starts the job, and starts it again after a failure as launch.restarts says. Returns the last verdict.
Verdict run_with_restarts(Job job, const RunFolder& folder, LaunchMethod method) {
  const auto answers = [method, reach = reach_of(job.config.launch)](const std::string& host) {
    return host_answers(host, method, reach);
  };
  RelaunchPolicy policy(job.config, answers);
  Restarts restarts;
  take_wrong_results(folder.logs());  // of an earlier run in this folder
  while (true) {
    const auto start = std::chrono::steady_clock::now();
    Verdict verdict = run_once(job, folder, method);
    report(verdict, static_cast<int>(job.config.launch.ranks), folder.logs());
    const auto newest = job.body ? std::nullopt : newest_checkpoint(folder);
    const auto wrong = take_wrong_results(folder.logs());
    const auto again =
        job.body ? std::nullopt : policy.next(verdict, newest ? newest->manifest.position.step : -1, wrong);
    if (!again) {
      if (!policy.why_not().empty()) print_to_console(policy.why_not());
      if (policy.too_few_ranks()) verdict.status = kTooFewRanks;
      return verdict;
    }
    const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - start;
    restarts = {.count = restarts.count + 1,
                .lost_seconds = restarts.lost_seconds + lost_of(lasted.count(), newest) + again->delay.count(),
                .wrong_ranks = again->wrong_ranks};
    set_restarts(restarts);
    prepare_relaunch(*again, newest, job);
    print_to_console(again->notice + (newest ? ", from " + newest->path : ", from the beginning"));
    if (wait_before_relaunch(again->delay)) continue;
    print_to_console("Stopped before it was started again; --resume auto continues");
    verdict.status = kInterrupted;
    return verdict;
  }
}

// Runs a rank that another launcher, or the mpirun of ours, has started.
int run_joined(const Job& job, const LaunchEnvironment& launched) {
  StartedRank rank = joined_rank(job, launched);
  const auto run = [&] { return run_rank(job, rank); };
  if (!job.goes_on()) return run();
  const std::string logs = rank.folder->logs();
  rank.completed = [logs, number = rank.rank()](int status) {
    if (!is_noted_as_lost(number, logs)) note_end_of_run(logs, status);
  };
  return run_watched({.rank = rank.rank(), .log_folder = logs, .lost_after = job.config.faults.lost_after}, run);
}

// A job that its launcher starts again goes on, as if --resume=auto had been given.
Job resumed_if_started_before(Job job) {
  if (!started_before() || job.body || job.config.checkpoint.resume != "none") return job;
  if (job.run_dir.empty()) {
    log_warning()
        << "the job was started again, but begins a new run: without --run_dir, it cannot know which to resume";
    return job;
  }
  job.config.checkpoint.resume = "auto";
  job.command.push_back("--resume=auto");
  return job;
}

}  // namespace

int run_job(const Job& given) {
  const Job started = resumed_if_started_before(given);
  if (const auto order = take_agent_order()) return run_as_agent(started, *order);
  if (const auto launched = detect_launch_environment(started.init)) {
    refuse_restarts(started, *launched);
    refuse_shrinking(started, launched->launcher);
    return run_joined(started, *launched);
  }
  Job job = started;
  use_nodes_of_slurm(job.config.launch);
  const LaunchMethod method = launch_method(job);
  refuse_too_many_ranks(job.config.launch);
  if (method == LaunchMethod::kMpirun) require_ulfm(job);
  // The run folder is created only after these checks.
  if (method == LaunchMethod::kMpirun) require_remote_shell(job.config.launch.hosts);
  if (method == LaunchMethod::kMpirun || method == LaunchMethod::kAgents) {
    require_variables(job.config.launch.pass_variables);
  }
  if (method == LaunchMethod::kAgents) {
    require_agents(job.config.launch);
    (void)host_shares(job.config.launch);
  }
  const ClaimedFolder claimed = prepare_folder(started);  // a later job has other nodes
  const RunFolder& folder = claimed.folder;
  print_run_header(job, folder, static_cast<int>(job.config.launch.ranks), backend_of(job.config));
  std::optional<EndCommand> command;
  if (!job.body) command.emplace(job.config.watch, job.config.name, folder);
  const Verdict verdict = run_with_restarts(job, folder, method);
  if (command) command->run(verdict.status, verdict.cause ? verdict.cause->message : "");
  return verdict.status;
}

}  // namespace phalanx
