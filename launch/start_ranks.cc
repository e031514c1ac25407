// SPDX-License-Identifier: Apache-2.0
#include "launch/start_ranks.h"

#include <stdlib.h>

#include <exception>
#include <filesystem>
#include <utility>

#include "framework/base/environment.h"
#include "launch/failure/record_exception.h"
#include "launch/local/launch_local.h"
#include "launch/mpirun/launch_mpi.h"
#include "launch/rank/launcher_watch.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

using Body = std::function<int(const LaunchEnvironment&)>;

constexpr const char* kLogFolder = "PHALANX_LOG_FOLDER";  // for the ranks of mpirun

int run_as_rank(const LaunchEnvironment& launched, const Body& body) {
  end_with_launcher(launched);
  const auto logs = environment(kLogFolder);
  if (!logs) return body(launched);  // a failure file would not be read
  try {
    return body(launched);
  } catch (...) {
    return record_exception(std::current_exception(), launched.rank_info.rank, *logs, "");
  }
}

int start_by_mpirun(const RankStart& start, const std::string& logs) {
  auto command = start.command;
  command.at(0) = std::filesystem::canonical("/proc/self/exe").string();  // valid in any folder of the ranks
  ::setenv(kLogFolder, logs.c_str(), 1);
  const int status =
      launch_mpi({.ranks = start.ranks, .hosts = start.hosts, .log_folder = logs, .command = std::move(command)});
  ::unsetenv(kLogFolder);
  return status;
}

}  // namespace

int start_ranks(const RankStart& start, const Body& body) {
  if (const auto launched = detect_launch_environment()) return run_as_rank(*launched, body);
  const TemporaryFolder logs;
  if (start.with_mpirun) return start_by_mpirun(start, logs.path());
  return launch_local({.ranks = start.ranks, .log_folder = logs.path()},
                      [&](int) { return body(*detect_launch_environment()); });
}

}  // namespace phalanx
