// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/failure.h"

namespace phalanx {

/// How a rank's process ended, as its parent saw it.
struct RankEnd {
  int rank = 0;        // -1: not a rank but what launched them all
  int status = 0;      // as wait() gives it
  double time = 0;     // seconds since the epoch
  bool by_us = false;  // of a signal that the launcher sent it
  std::string host{};
};

/// What became of a job.
struct Verdict {
  int status = 0;                  // ExitStatus
  std::optional<Failure> cause{};  // what to report; without log file
  bool unexplained = false;        // the rank itself left no message: the end of its log may tell more
  int others = 0;                  // further ranks that did not end well
};

/// Finds the first cause. A failure left by a rank with leave_failure(), a death by a signal that the launcher did not
/// send, and an exit status without a message are all candidates, and the earliest one is the cause. Secondary failures
/// count only if there is nothing else, whichever was seen first.
///
/// Status: kInterrupted if the job was interrupted; otherwise that of the rank with the first cause (see
/// exit_status_of), or `status_without_end` if its end is not among `ends`; kTimeUp or kInterrupted if ranks stopped on
/// their own; otherwise kDone.
Verdict judge(const std::vector<RankEnd>& ends, std::vector<Failure> failures, bool interrupted,
              int status_without_end = 1);

/// ExitStatus for the end of one process: its own where it is one of ours, else kRankDied.
int exit_status_of(int wait_status);

/// Whether a process failed: it ended otherwise than with kDone, kTimeUp or kInterrupted.
bool failed(int wait_status);

/// "It was killed by signal 9 (SIGKILL). ...", with what commonly is behind it.
std::string describe_end(int wait_status);

}  // namespace phalanx
