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

/// Runs `body(rank)` in `ranks` child processes, forked from this one, and returns the job's exit status (ExitStatus).
///
/// Call while this process has a single thread: children start with everything it has loaded, which is what makes them
/// start fast. In a child the environment is that of a torchrun worker (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE)
/// plus PHALANX_RENDEZVOUS, the file:// URL where ranks meet, and PHALANX_LAUNCHER=local. body runs under run_rank():
/// its result is the child's exit status, an exception is a failure left in log_folder. A child ends by _exit():
/// destructors of globals do not run. Standard input is empty; standard output and error of ranks other than 0 are
/// appended to log_folder/rank<r>.log.
///
/// The job ends when all ranks have ended. When one fails, with a status other than kDone and kInterrupted, the others
/// have 2 s to end by themselves (they notice a lost peer), then get SIGTERM, and SIGKILL at 3.5 s. The first cause is
/// printed to standard error once, framed: what its rank left by leave_failure(), or how it died with the last lines of
/// its log; it decides the job's status (see verdict.h). Failures of an earlier job in log_folder are dropped.
///
/// A first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks all ranks to stop (SIGTERM, see stop_signal.h), however long that
/// takes; a second SIGINT or SIGTERM, 0.2 s or more after the first, kills them at once, as does the end of the time
/// that `stopping` leaves after SIGTERM; in each case standard error says so, and the status is kInterrupted. Children
/// die with this process, also when it is killed. Throws Error when it cannot start them all.
int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body);

}  // namespace phalanx
