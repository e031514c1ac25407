// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/failure/verdict.h"
#include "launch/signals/stop_messages.h"

namespace phalanx {

struct MpiLaunch {
  int ranks = 2;
  std::vector<std::string> hosts{};           // "name" or "name:slots"; empty: this host
  std::string log_folder{};                   // log folder of the run; must exist and be visible to all ranks
  std::vector<std::string> mpirun_options{};  // further words of mpirun's command line
  std::vector<std::string>
      pass_variables{};                // further variables for the ranks on all hosts: names, or beginnings and *
  std::vector<std::string> command{};  // the program to run as each rank, with its arguments
  StopPolicy stop_policy{};            // reaction to a signal
  std::function<std::string()> describe_saved =
      {};  // describes the saved state of a job that was ended before it had stopped
  std::function<void(const Verdict&)> ended = {};  // if set, is called at the end, after the report of a failure
  bool goes_on = false;  // the ranks that are left go on without one that fails (faults.on_lost_rank: shrink)
};

/// Runs `command` under mpirun (found by find_mpirun()) and returns the job's exit status (ExitStatus).
///
/// mpirun is that of Open MPI, or Hydra of MPICH or Intel MPI. Open MPI's is given the options that small machines and
/// containers need: --oversubscribe, --bind-to none, --allow-run-as-root if the user is root, and a HOME if there is
/// none. `mpirun_options` come after them; with a --bind-to of their own, --bind-to none is left out. Hydra needs none
/// of these; Intel MPI's gets I_MPI_PIN=0 unless the environment has a variable I_MPI_PIN*. The ranks on all hosts get
/// PHALANX_LAUNCHER=mpi, this process's other PHALANX_* variables and those of `pass_variables`, and PHALANX_TERMINAL=1
/// or 0, which tells if this process's standard output is a terminal (Open MPI 5 always gives ranks a pseudo-terminal,
/// so isatty() is misleading there). Without `hosts`, they also get PHALANX_RENDEZVOUS, the file:// URL of a
/// rendezvous, which is removed when this process ends, in whatever way. The ranks must call end_with_launcher(), and
/// record_exception() if they fail.
///
/// The ranks' standard output is passed on, and so is their standard error, line by line. mpirun's own notices are held
/// back, and shown only if no rank wrote a failure that explains the end.
///
/// Failures are handled as in launch_local(), except that Open MPI's mpirun itself ends the other ranks immediately
/// when a rank ends with a status other than 0. Ranks that stop when asked must therefore end together (MPI_Finalize
/// ensures that). Hydra does so only for ranks that have started MPI; the failure that another rank writes to
/// `log_folder` has the same effect, unless it was written on another host. Otherwise ranks end because they lose a
/// peer.
///
/// With `goes_on`, Open MPI's mpirun gets --with-ft ulfm, with which it ends no rank because of another one; it must be
/// an mpirun for which why_no_ulfm() is empty. The ranks must call run_watched(). A rank that fails after the beginning
/// of training is a loss (is_loss()); the others note it (mark_lost()), and it does not count for the status and the
/// first cause. Any other failure ends the job. Since such an mpirun ends with status 0 even if all ranks were killed,
/// the job is done only if the first of the ranks that are left has noted so (note_end_of_run()); if it has not, and no
/// failure was written, the status is kRankDied.
///
/// The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP reaches the ranks as SIGUSR1. A second SIGINT or SIGTERM, or the end of
/// the grace period of `stop_policy` after SIGTERM, makes mpirun end them, and a message is printed to standard error.
/// mpirun has its own process group, so the terminal's Ctrl-C reaches only this process. If this process is killed,
/// mpirun ends the ranks; if mpirun is killed, end_with_launcher() ends them.
///
/// Must be called in the main thread, with no other threads. Throws ConfigError if there is no mpirun, no command, no
/// way to reach a host (require_remote_shell()), or a variable is not set (require_variables()), and Error if it cannot
/// start.
int launch_mpi(const MpiLaunch& options);

/// Does the same without reporting a failure and without calling `ended`, and returns the verdict.
Verdict run_mpi(const MpiLaunch& options);

}  // namespace phalanx
