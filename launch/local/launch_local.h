// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "launch/failure/verdict.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/supervisor.h"
#include "launch/signals/stop_messages.h"

namespace phalanx {

struct LocalLaunch {
  int ranks = 2;
  bool threads = false;      // the ranks are threads of one child process, not a child process each
  std::string log_folder{};  // must exist; receives rank<r>.log and failures
  StopPolicy stop_policy{};  // reaction to a signal
  std::function<std::string()> describe_saved =
      {};  // describes the saved state of a job that was ended before it had stopped
  std::function<void(const Verdict&)> ended = {};  // if set, is called at the end, after the report of a failure
  std::function<void()> prepare = {};              // if set, is called in each child process before its ranks begin
  bool goes_on = false;          // the ranks that are left go on without one that fails (faults.on_lost_rank: shrink)
  double lost_after = 5;         // then: seconds for which a rank may be stopped (SIGSTOP) before it is killed
  int replacements = 0;          // then: processes that are started for lost ranks (faults.on_lost_rank: replace)
  double replacement_delay = 1;  // seconds before the second one for the same place; doubles with each, up to 60
  bool redirect_output = true;   // false: all ranks write to this process's standard output and error

  // The place of these ranks in a job that has others on other hosts.
  int first_rank = 0;        // the ranks are first_rank, first_rank + 1, ...
  int ranks_of_job = 0;      // 0: the job has no others
  std::string rendezvous{};  // the URL at which all ranks meet; empty: a file on this host

  /// With `replacements`, a folder that all hosts see, for MeetingFolder; empty: one on this host.
  std::string meeting_folder{};
};

/// Runs `body(rank)` for each rank in child processes forked from this one, and returns the job's exit status
/// (ExitStatus).
///
/// Must be called while this process has a single thread. The children inherit everything it has loaded, which is why
/// they start fast. A child's environment is that of a torchrun worker (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE)
/// plus PHALANX_RENDEZVOUS, the file:// URL of the rendezvous, and PHALANX_LAUNCHER=local. The result of `body` becomes
/// the child's exit status, and an exception is written to log_folder as a failure (record_exception()). A child ends
/// with _exit(), so destructors of globals do not run. Its standard input is empty. For ranks other than 0, standard
/// output and error are appended to log_folder/rank<r>.log.
///
/// With `threads`, all ranks run in a single child process, so that its death is reported like the death of any rank.
/// It has the environment of rank 0 of one, and rank 0's standard output and error. Its status is the most serious one
/// of its ranks. If a rank has failed and the others do not end, the process ends after 3.5 s.
///
/// The job ends when all ranks have ended. If one fails (with a status other than kDone and kInterrupted), the others
/// have 2 s to end on their own, since they notice the lost peer. Then they get SIGTERM, and SIGKILL at 3.5 s. The
/// first cause is printed once to standard error, in a frame: the failure that the rank wrote with write_failure(), or
/// how it died, with the last lines of its log. It determines the job's status (see verdict.h). Failures of an earlier
/// job in log_folder are discarded.
///
/// With `goes_on`, a rank that dies or fails after the beginning of training (note_training()) does not end the job
/// while others are left, with two exceptions: its status says that all ranks end for the same reason (kUsage,
/// kExpectationFailed, kTooFewRanks), or it gives up on another rank (Failure::secondary) and the others have not noted
/// it as lost (mark_lost()). The launcher writes down how it died, as its failure. Ranks that have been noted as lost
/// do not count for the status and the first cause, unless no other rank is left. Once only such ranks are still
/// running, they are ended. A rank that is stopped (SIGSTOP) for `lost_after` seconds while another one runs is killed.
///
/// With `replacements`, a process is started for each lost rank, and for each that ends with kDone after it has been
/// noted as lost, up to this number of processes. Its rank is the number of processes started before.
/// PHALANX_MEETING_FOLDER names the meeting folder for all ranks, and PHALANX_NEWCOMER describes the newcomer to itself
/// (meeting_folder.h). A newcomer that fails before it takes part is lost, and replaced as well. Newcomers that wait
/// end when all others have ended.
///
/// The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks all ranks to stop (with SIGTERM, see stop_signal.h), however long
/// that takes. A second SIGINT or SIGTERM, 0.2 s or more after the first, kills them at once, and so does the end of
/// the grace period of `stop_policy` after SIGTERM. In each case a message is printed to standard error, and the status
/// is kInterrupted. Children die with this process, even if it is killed. Throws Error if it cannot start all of them.
int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body);

/// Does the same without printing the first cause, and returns the verdict.
Verdict run_local(const LocalLaunch& options, const std::function<int(int rank)>& body);

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
