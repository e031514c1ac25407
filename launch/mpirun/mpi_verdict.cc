// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpi_verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/failure/loss.h"
#include "launch/local/print_to_console.h"
#include "launch/mpirun/end_of_run.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// A network file system may show what another host has written as late as this (acdirmax of NFS).
constexpr milliseconds kLateFiles{60'000};
constexpr milliseconds kLookForLateFiles{100};
constexpr milliseconds kTellOfWait{3000};

// Returns the ends of the ranks. If mpirun reports none, its own end is used instead.
std::vector<RankEnd> ends_of_ranks(const Supervisor::End& mpirun, std::vector<RankEnd> ends) {
  for (auto& end : ends) end.time = mpirun.time;
  if (ends.empty())
    ends.push_back({.rank = -1, .status = mpirun.status, .time = mpirun.time, .by_supervisor = mpirun.by_supervisor});
  return ends;
}

// Hydra ends with the number of the signal that killed a rank, also if it sent the signal itself because another rank
// had failed.
int status_without_end(const Supervisor::End& mpirun, const std::vector<RankEnd>& ends, bool hydra, bool explained) {
  const int status = exit_status_of(hydra ? ends.front().status : mpirun.status);
  return hydra && explained && status == kRankDied ? kFailed : status;
}

// Returns the message for the end of a job of which no rank is known to be the cause.
std::string describe_end_of_launcher(const std::string& end, const std::string& text, bool rank_was_killed) {
  if (text.empty()) return "mpirun: " + end;
  return rank_was_killed ? "A rank ended, and mpiexec does not say which. " + end + "\n\n" + text : text;
}

// Returns true if there is a failure of a rank without which the others have not gone on.
bool any_has_failed(const std::string& log_folder) {
  return std::ranges::any_of(read_failures(log_folder),
                             [&](const Failure& one) { return !is_noted_as_lost(one.rank, log_folder); });
}

struct NotedEnd {
  std::optional<int> status{};  // with which the ranks have ended the run
  bool stopped = false;         // somebody has ended the wait for it
};

// Takes the status with which the ranks have ended the run. If nothing explains why mpirun has ended with status 0,
// waits for the note, or for a failure.
NotedEnd take_noted_end(const EndedMpiJob& job, bool unexplained, Supervisor& supervisor) {
  const std::string& folder = job.options.log_folder;
  const auto start = Supervisor::Clock::now();
  const auto deadline = start + (unexplained && !job.options.hosts.empty() ? kLateFiles : milliseconds(0));
  bool told = false;
  while (true) {
    if (const auto status = take_end_of_run(folder, job.spare)) return {.status = status};
    const auto now = Supervisor::Clock::now();
    if (now >= deadline || any_has_failed(folder)) return {};
    if (now - start >= kTellOfWait && !std::exchange(told, true)) {
      print_to_console("All ranks have ended; waits up to 60 s until this host sees in " + folder + " how");
    }
    if (supervisor.is_stopped_within(kLookForLateFiles)) {
      print_to_console("Does not wait any longer, as requested, so how the run has ended is unknown: see " + folder);
      return {.stopped = true};
    }
  }
}

// Returns the cause of a job whose ranks have all ended without a word. `text` is what mpirun says.
Failure nobody_has_ended_the_run(const std::string& log_folder, const std::string& text) {
  return {.rank = -1,
          .message = "mpirun has ended, but no rank has noted in " + log_folder +
                     " that the run has ended, or why it has failed. So all ranks were killed, or this folder cannot "
                     "be written: check `df " +
                     log_folder + "`, and the ranks' logs." + (text.empty() ? "" : "\n\n" + text),
          .time = failure_time()};
}

}  // namespace

Verdict conclude(const EndedMpiJob& job, Supervisor& supervisor) {
  const Supervisor::End& mpirun = job.mpirun;
  const LauncherNotices& notices = job.notices;
  const std::string& log_folder = job.options.log_folder;
  MpiLosses* const losses = job.losses;
  NotedEnd noted;
  if (losses != nullptr) noted = take_noted_end(job, mpirun.status == 0 && !supervisor.interrupted(), supervisor);
  const bool interrupted = supervisor.interrupted() || noted.stopped;
  auto failures = take_failures(log_folder, job.spare);
  if (losses != nullptr) losses->settle(failures);
  // With losses, a rank that mpirun names need not be a cause.
  auto ends = ends_of_ranks(mpirun, losses != nullptr ? std::vector<RankEnd>() : notices.ends());
  const bool killed = ends.front().rank < 0 && WIFSIGNALED(ends.front().status);
  const int status = status_without_end(mpirun, ends, notices.from_hydra(), !failures.empty());
  // In an interrupted job, only the ranks' failures matter: mpirun's notices name the ranks that it ended on our
  // request.
  if (interrupted || (!failures.empty() && ends.front().rank < 0)) ends.clear();
  Verdict verdict = judge(ends, std::move(failures), interrupted, status);
  // In this case, mpirun may end with the status of any rank.
  if (losses != nullptr && !interrupted && verdict.cause && verdict.cause->status != 0) {
    verdict.status = verdict.cause->status;
  }
  const std::string text = join(notices.texts(), "\n");
  if (verdict.cause && verdict.cause->rank < 0) {
    verdict.cause->message = describe_end_of_launcher(verdict.cause->message, text, notices.from_hydra() && killed);
  } else if (!verdict.cause && !interrupted) {
    // With losses, mpirun ends with status 0 if all ranks were killed, too.
    if (losses != nullptr && verdict.status == kDone) {
      if (!noted.status) {
        return {.status = kRankDied, .cause = nobody_has_ended_the_run(log_folder, text), .unexplained = true};
      }
      verdict.status = *noted.status;
    }
    standard_error().write(text);
  }
  return verdict;
}

}  // namespace phalanx
