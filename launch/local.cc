// SPDX-License-Identifier: Apache-2.0
#include "launch/local.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/console.h"
#include "launch/failure.h"
#include "launch/report.h"
#include "launch/run_rank.h"
#include "launch/supervisor.h"
#include "launch/temporary_folder.h"
#include "launch/verdict.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

Supervisor::Policy policy_of(const LocalLaunch& options) {
  return {.stop = SIGTERM,
          .orphaned = SIGKILL,
          .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(3500), SIGKILL}},
          .at_once = {{milliseconds(0), SIGKILL}},
          .stopping = options.stopping,
          .kept = options.kept};
}

Descriptor open(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.valid()) throw Error(path + ": " + std::generic_category().message(errno));
  return file;
}

void set_environment(int rank, int ranks, const std::string& meeting) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(ranks));
  set("LOCAL_RANK", std::to_string(rank));
  set("LOCAL_WORLD_SIZE", std::to_string(ranks));
  set("PHALANX_RENDEZVOUS", "file://" + meeting + "/store");
  set("PHALANX_LAUNCHER", "local");
  set(kSpareFailureFolder, meeting);
}

// Opens the log in the child, so that no rank inherits another rank's log.
void redirect(int rank, const std::string& log) {
  ::dup2(open("/dev/null", O_RDONLY).get(), STDIN_FILENO);
  if (rank == 0) return;
  const Descriptor file = open(log, O_WRONLY | O_APPEND | O_CREAT);
  keep_console();
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

int be_rank(int rank, const LocalLaunch& options, const std::string& meeting, const std::function<int(int)>& body) {
  const std::string log = log_path(options.log_folder, rank);
  return run_rank(rank, options.log_folder, log, [&] {
    set_environment(rank, options.ranks, meeting);
    redirect(rank, log);
    return body(rank);
  });
}

std::vector<RankEnd> ends_of_ranks(const std::vector<Supervisor::End>& ends) {
  std::vector<RankEnd> ranks;
  for (const auto& end : ends) {
    ranks.push_back(
        {.rank = end.child, .status = end.status, .time = end.time, .by_us = end.by_us, .host = host_name()});
  }
  return ranks;
}

}  // namespace

int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  take_failures(options.log_folder);
  const TemporaryFolder meeting(TemporaryFolder::Removal::kAlways);
  Supervisor supervisor(policy_of(options));
  for (int rank = 0; rank < options.ranks; ++rank) {
    supervisor.start([&] { return be_rank(rank, options, meeting.path(), body); });
  }
  const auto ends = ends_of_ranks(supervisor.run());
  // A process with several ranks has one exit status for all of them.
  const int status = exit_status_of(ends.front().status);
  const Verdict verdict =
      judge(ends, take_failures(options.log_folder, meeting.path()), supervisor.interrupted(), status);
  report(verdict, options.reported_ranks > 0 ? options.reported_ranks : options.ranks, options.log_folder);
  return verdict.status;
}

}  // namespace phalanx
