// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace phalanx {

struct WatchedRank {
  int rank = 0;
  std::string log_folder{};  // of the run; all hosts see it
  double lost_after = 5;     // seconds for which the rank may be stopped (SIGSTOP) before it is killed
};

/// Runs `body`, a rank of a job that goes on without lost ranks (MpiLaunch::goes_on), in a child of this process, which
/// mpirun has started. mpirun says nothing of the end of such a rank, and does not notice that it is stopped, so its
/// parent does what launch_local() does for its ranks:
///
///   - If the rank is killed, or fails without a reason, how it has ended is written to `log_folder` as its failure.
///   - A rank that is stopped for `lost_after` seconds is killed.
///   - The rank gets the first SIGTERM or SIGUSR1 of this process as SIGUSR1, and dies with this process.
///
/// The child ends by exit(), in which a rank leaves MPI, or by SIGKILL if the others go on without it: because it has
/// failed (is_loss()), or because they have noted it as lost (mark_lost()), as a rank that leaves with its replica. An
/// exception of `body` is recorded (record_exception()).
///
/// Returns the rank's exit status. If a signal has ended the rank, ends this process by SIGKILL, since mpirun tells the
/// other ranks of an end by a signal only. Must be called in a process with one thread. Throws Error if it cannot start
/// the child.
int run_watched(const WatchedRank& options, const std::function<int()>& body);

}  // namespace phalanx
