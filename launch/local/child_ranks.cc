// SPDX-License-Identifier: Apache-2.0
#include "launch/local/child_ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/record_exception.h"
#include "launch/local/print_to_console.h"
#include "launch/local/run_as_threads.h"

namespace phalanx {
namespace {

int processes(const LocalLaunch& options) { return options.threads ? 1 : options.ranks; }

Descriptor open(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.valid()) throw Error(path + ": " + std::generic_category().message(errno));
  return file;
}

// Adds what a newcomer, which is not one of the ranks yet, knows of itself.
void describe_newcomer(const Newcomer& newcomer) {
  const std::string size = std::to_string(newcomer.number + 1);  // its number is at least the number of ranks
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) ::setenv(name, size.c_str(), 1);
  ::setenv("LOCAL_RANK", std::to_string(newcomer.local_rank).c_str(), 1);
  ::setenv(kNewcomer, to_text(newcomer).c_str(), 1);
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

}  // namespace

void ChildRanks::start_all(Supervisor& supervisor) {
  for (int child = 0; child < processes(options_); ++child) start(options_.first_rank + child, {}, supervisor);
}

void ChildRanks::start(int rank, const std::optional<Newcomer>& newcomer, Supervisor& supervisor) {
  supervisor.start([&] { return run(rank, newcomer); });
  numbers_.push_back(rank);
}

// Runs in the child.
int ChildRanks::run(int rank, const std::optional<Newcomer>& newcomer) const {
  const std::string log = log_path(options_.log_folder, rank);
  try {
    set_environment(rank);
    if (newcomer) describe_newcomer(*newcomer);
    redirect(rank, log, options_.redirect_output);
    if (options_.prepare) options_.prepare();
    return options_.threads ? run_as_threads(options_, body_) : body_(rank);
  } catch (...) {
    return record_exception(std::current_exception(), rank, options_.log_folder, log);
  }
}

void ChildRanks::set_environment(int rank) const {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  const int ranks = processes(options_);
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(std::max(options_.ranks_of_job, ranks)));
  set("LOCAL_RANK", std::to_string(rank - options_.first_rank));
  set("LOCAL_WORLD_SIZE", std::to_string(ranks));
  set("PHALANX_RENDEZVOUS", options_.rendezvous.empty() ? "file://" + folder_ + "/store" : options_.rendezvous);
  set("PHALANX_LAUNCHER", "local");
  set(kSpareFailureFolder, folder_);
  if (options_.replacements > 0) set(kMeetingFolder, meeting_folder());
}

}  // namespace phalanx
