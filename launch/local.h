// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "launch/stop_words.h"

namespace phalanx {

struct LocalLaunch {
  int ranks = 2;
  std::string log_folder{};  // exists; takes rank<r>.log and failures
  int reported_ranks = 0;    // of how many ranks a report speaks, where a process holds several; 0: `ranks`
  Stopping stopping{};       // by a signal
  std::function<std::string()> kept = {};  // what is left of a job that was ended before it had stopped
};

/// Runs `body(rank)` in `ranks` child processes forked from this one, and returns the job's exit status (ExitStatus).
///
/// Call it while this process has a single thread. The children inherit everything it has loaded, which is why they
/// start fast. A child's environment is that of a torchrun worker (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE) plus
/// PHALANX_RENDEZVOUS, the file:// URL of the rendezvous, and PHALANX_LAUNCHER=local. `body` runs under run_rank(): its
/// result becomes the child's exit status, and an exception is left in log_folder as a failure. A child ends with
/// _exit(), so destructors of globals do not run. Its standard input is empty; standard output and error of ranks other
/// than 0 are appended to log_folder/rank<r>.log.
///
/// The job ends when all ranks have. If one fails (a status other than kDone and kInterrupted), the others have 2 s to
/// end on their own, since they notice the lost peer; then they get SIGTERM, and SIGKILL at 3.5 s. The first cause is
/// printed once to standard error, framed: what that rank left with leave_failure(), or how it died with the last lines
/// of its log. It determines the job's status (see verdict.h). Failures of an earlier job in log_folder are discarded.
///
/// A first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks all ranks to stop (SIGTERM, see stop_signal.h), however long that
/// takes; a second SIGINT or SIGTERM, 0.2 s or more after the first, kills them at once, as does the end of the time
/// that `stopping` leaves after SIGTERM; in each case standard error says so, and the status is kInterrupted. Children
/// die with this process, also when it is killed. Throws Error when it cannot start them all.
int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body);

}  // namespace phalanx
