// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/verdict.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>

#include "launch/exit_status.h"

namespace phalanx {
namespace {

// The terminal, or whatever ended the whole process group, also sends these signals to ranks that are not ready to
// handle them yet.
bool is_interrupt(int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1;
}

bool left_by(int rank, const std::vector<Failure>& failures) {
  return std::ranges::any_of(failures, [rank](const Failure& failure) { return failure.rank == rank; });
}

Failure failure_of(const RankEnd& end) {
  const std::string stopped = "It was stopped (SIGSTOP) for longer than faults.lost_after, and was killed.";
  return {.rank = end.rank,
          .host = end.host,
          .message = end.stopped ? stopped : describe_end(end.status),
          .time = end.time};
}

int status_of(int rank, const std::vector<RankEnd>& ends, int without_end) {
  const auto end = std::ranges::find(ends, rank, &RankEnd::rank);
  if (end == ends.end()) return without_end == kDone ? kFailed : without_end;
  // The rank failed and then hung, or reported a failure and then stopped as requested: its failure counts.
  if (end->by_supervisor || !failed(end->status)) return kFailed;
  return exit_status_of(end->status);
}

const char* hint(int signal) {
  switch (signal) {
    case SIGKILL:
      return "The program never does this itself. Unless somebody killed it, the kernel's out-of-memory killer is one "
             "possible cause: check `dmesg | grep -i oom`.";
    case SIGBUS:
      return "Running out of shared memory (/dev/shm) is one possible cause.";
    case SIGILL:
      return "A library built for another processor is one possible cause.";
    default:
      return "";
  }
}

}  // namespace

Verdict judge(const std::vector<RankEnd>& ends, std::vector<Failure> failures, bool interrupted,
              int status_without_end) {
  const auto own = failures;
  for (const auto& end : ends) {
    if (!failed(end.status) || end.by_supervisor || left_by(end.rank, own)) continue;
    if (!(interrupted && is_interrupt(end.status))) failures.push_back(failure_of(end));
  }
  if (interrupted) std::erase_if(failures, [](const Failure& failure) { return failure.secondary; });
  std::ranges::stable_sort(failures, is_more_likely_cause);

  Verdict verdict;
  const bool stopped = std::ranges::any_of(ends, [](const RankEnd& end) { return end.status != 0; });
  const bool time_up =
      std::ranges::any_of(ends, [](const RankEnd& end) { return exit_status_of(end.status) == kTimeUp; });
  verdict.status = interrupted ? kInterrupted : time_up ? kTimeUp : stopped ? kInterrupted : kDone;
  if (failures.empty()) return verdict;
  verdict.cause = failures.front();
  const int rank = verdict.cause->rank;
  if (!interrupted) verdict.status = status_of(rank, ends, status_without_end);
  verdict.unexplained = !left_by(rank, own);
  verdict.others = static_cast<int>(
      std::ranges::count_if(ends, [rank](const RankEnd& end) { return end.rank != rank && end.status != 0; }));
  return verdict;
}

int exit_status_of(int wait_status) {
  if (!WIFEXITED(wait_status)) return kRankDied;
  switch (const int status = WEXITSTATUS(wait_status)) {
    case kDone:
    case kFailed:
    case kUsage:
    case kExpectationFailed:
    case kTooFewRanks:
    case kTimeUp:
    case kInterrupted:
      return status;
    default:
      return kRankDied;
  }
}

int most_serious(const std::vector<int>& statuses) {
  for (const int status : {kUsage, kFailed, kRankDied, kExpectationFailed, kTooFewRanks, kInterrupted, kTimeUp}) {
    if (std::ranges::find(statuses, status) != statuses.end()) return status;
  }
  return std::ranges::max(statuses);
}

bool failed(int wait_status) { return is_failure(exit_status_of(wait_status)); }

std::string describe_end(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return "It ended with exit status " + std::to_string(WEXITSTATUS(wait_status)) + " without giving a reason.";
  }
  const int signal = WTERMSIG(wait_status);
  const char* name = ::sigabbrev_np(signal);
  const std::string called = name ? " (SIG" + std::string(name) + ")" : "";
  const std::string more = hint(signal);
  return "It was killed by signal " + std::to_string(signal) + called + "." + (more.empty() ? "" : "\n" + more);
}

}  // namespace phalanx
