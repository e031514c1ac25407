// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launch/local/launch_local.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// The processes of this host in a job whose launcher may start more of them.
struct Share {
  Supervisor& supervisor;

  /// Starts a process that takes the place of a lost rank of any host, by its number. Throws Error.
  std::function<void(const Newcomer&)> start;

  /// Is called with each process that has ended, by its number in the job, with true if the others go on without it,
  /// and with its ExitStatus. May be null.
  std::function<void(int number, bool lost, int status)> ended = {};
};

/// Runs the ranks of this host for a launcher on another one (launch/agents), which discards and reads the failures of
/// the job in log_folder, which all hosts see. `prepare` is called once the ranks have been started, and may set
/// Share::ended. There may be no ranks at the beginning.
///
/// With `replacements`, the launcher decides which processes are started for lost ranks, and ends those that wait when
/// the job ends: this function returns when all processes have ended, but as long as all of them were lost, only after
/// the supervisor has been asked to stop or to end them.
///
/// Failures are handled as in run_local(), except that a failure is also written for each rank that has ended the job
/// without writing one. With `goes_on`, the ranks of other hosts may go on without all ranks of this one. Returns the
/// exit status of the rank with the first cause among those that are not lost. If they have not failed, returns their
/// most serious one, or kDone if all are lost.
int run_share(const LocalLaunch& options, const std::function<int(int rank)>& body,
              const std::function<void(Share&)>& prepare);

}  // namespace phalanx
