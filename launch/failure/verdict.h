// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/failure/failure.h"

namespace phalanx {

/// The end of a rank's process, as observed by its parent.
struct RankEnd {
  int rank = 0;                // -1: not a rank but the program that launched all ranks
  int status = 0;              // value returned by wait()
  double time = 0;             // seconds since the epoch
  bool by_supervisor = false;  // caused by a signal that the launcher sent
  bool stopped = false;        // killed because it was stopped for too long (faults.lost_after)
  std::string host{};
};

/// The outcome of a job.
struct Verdict {
  int status = 0;                  // ExitStatus
  std::optional<Failure> cause{};  // failure to report; has no log file
  bool unexplained = false;        // the rank itself left no message, so the end of its log may help
  int others = 0;                  // number of further ranks that ended with another status than 0
};

/// Determines the first cause. Candidates are failures that ranks wrote with write_failure(), deaths by a signal that
/// the launcher did not send, and exit statuses without a message. The earliest candidate is the cause. Secondary
/// failures count only if there is no other candidate, regardless of their time.
///
/// The status is kInterrupted if the job was interrupted. Otherwise it is the status of the rank with the first cause
/// (see exit_status_of), or `status_without_end` if its end is not among `ends`. Without a cause, it is kTimeUp or
/// kInterrupted if ranks stopped on their own, and kDone otherwise.
Verdict judge(const std::vector<RankEnd>& ends, std::vector<Failure> failures, bool interrupted,
              int status_without_end = 1);

/// Returns the ExitStatus for the end of a process: its exit status if that is one of ours, otherwise kRankDied.
int exit_status_of(int wait_status);

/// Returns the most serious of the ExitStatuses of ranks that are one process, or of one host. There must be one.
int most_serious(const std::vector<int>& statuses);

/// Returns true if a process failed: it ended otherwise than with kDone, kTimeUp or kInterrupted.
bool failed(int wait_status);

/// Returns a text such as "It was killed by signal 9 (SIGKILL). ...", with common causes of that signal.
std::string describe_end(int wait_status);

}  // namespace phalanx
