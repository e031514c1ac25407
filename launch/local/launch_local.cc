// SPDX-License-Identifier: Apache-2.0
#include "launch/local/launch_local.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <system_error>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure/end_after_failure.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/verdict.h"
#include "launch/local/print_to_console.h"
#include "launch/local/rank_threads.h"
#include "launch/local/supervisor.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

Supervisor::Policy policy_of(const LocalLaunch& options) {
  return {.stop = SIGTERM,
          .orphaned = SIGKILL,
          .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(3500), SIGKILL}},
          .forced = {{milliseconds(0), SIGKILL}},
          .stop_policy = options.stop_policy,
          .describe_saved = options.describe_saved};
}

int processes(const LocalLaunch& options) { return options.threads ? 1 : options.ranks; }

Descriptor open(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.valid()) throw Error(path + ": " + std::generic_category().message(errno));
  return file;
}

void set_environment(int rank, int ranks, const std::string& rendezvous_folder) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(ranks));
  set("LOCAL_RANK", std::to_string(rank));
  set("LOCAL_WORLD_SIZE", std::to_string(ranks));
  set("PHALANX_RENDEZVOUS", "file://" + rendezvous_folder + "/store");
  set("PHALANX_LAUNCHER", "local");
  set(kSpareFailureFolder, rendezvous_folder);
}

// Opens the log in the child, so that no rank inherits another rank's log.
void redirect(int rank, const std::string& log, bool output) {
  ::dup2(open("/dev/null", O_RDONLY).get(), STDIN_FILENO);
  if (rank == 0 || !output) return;
  const Descriptor file = open(log, O_WRONLY | O_APPEND | O_CREAT);
  save_console();
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

// Runs all ranks in this process and returns the most serious of their statuses.
int run_as_threads(const LocalLaunch& options, const std::function<int(int)>& body) {
  std::vector<int> statuses(static_cast<std::size_t>(options.ranks));
  EndAfterFailure end;
  run_rank_threads(options.ranks, [&](const RankInfo& rank_info) {
    const int rank = rank_info.rank;
    int& status = statuses[static_cast<std::size_t>(rank)];
    try {
      status = body(rank);
    } catch (...) {
      status = record_exception(std::current_exception(), rank, options.log_folder, log_path(options.log_folder, rank));
    }
    if (is_failure(status)) end.failed(status);
  });
  for (const int status : {kUsage, kFailed, kRankDied, kExpectationFailed, kInterrupted, kTimeUp}) {
    if (std::ranges::find(statuses, status) != statuses.end()) return status;
  }
  return std::ranges::max(statuses);
}

int run_child(int child, const LocalLaunch& options, const std::string& rendezvous_folder,
              const std::function<int(int)>& body) {
  const std::string log = log_path(options.log_folder, child);
  try {
    set_environment(child, processes(options), rendezvous_folder);
    redirect(child, log, options.redirect_output);
    if (options.prepare) options.prepare();
    return options.threads ? run_as_threads(options, body) : body(child);
  } catch (...) {
    return record_exception(std::current_exception(), child, options.log_folder, log);
  }
}

std::vector<RankEnd> ends_of_ranks(const std::vector<Supervisor::End>& ends) {
  std::vector<RankEnd> ranks;
  for (const auto& end : ends) {
    ranks.push_back({.rank = end.child,
                     .status = end.status,
                     .time = end.time,
                     .by_supervisor = end.by_supervisor,
                     .host = host_name()});
  }
  return ranks;
}

}  // namespace

Verdict run_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  take_failures(options.log_folder);
  const TemporaryFolder rendezvous_folder(TemporaryFolder::Removal::kAlways);
  Supervisor supervisor(policy_of(options));
  for (int child = 0; child < processes(options); ++child) {
    supervisor.start([&] { return run_child(child, options, rendezvous_folder.path(), body); });
  }
  const auto ends = ends_of_ranks(supervisor.run());
  // A process with several ranks has one exit status for all of them.
  const int status = exit_status_of(ends.front().status);
  return judge(ends, take_failures(options.log_folder, rendezvous_folder.path()), supervisor.interrupted(), status);
}

int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  const Verdict verdict = run_local(options, body);
  report(verdict, options.ranks, options.log_folder);
  if (options.ended) options.ended(verdict);
  return verdict.status;
}

}  // namespace phalanx
