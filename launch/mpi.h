#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/stop_words.h"

namespace phalanx {

struct MpiLaunch {
  int ranks = 2;
  std::vector<std::string> hosts{};        // "name" or "name:slots"; empty: this host
  std::string log_folder{};                // of the run, exists, visible to all ranks
  std::vector<std::string> command{};      // the program to run as each rank, with its arguments
  Stopping stopping{};                     // by a signal
  std::function<std::string()> kept = {};  // what is left of a job that was ended before it had stopped
};

/// Runs `command` under mpirun and returns the job's exit status (ExitStatus). mpirun is that of find_mpirun().
///
/// mpirun is given what small machines and containers need: --oversubscribe, --bind-to none, --allow-run-as-root as
/// root, and a HOME if there is none. Ranks on every host get PHALANX_LAUNCHER=mpi, this process's other PHALANX_*
/// variables, and PHALANX_TERMINAL=1 or 0: whether this process's standard output is a terminal (Open MPI 5 gives ranks
/// a pseudo-terminal in any case, so isatty() misleads them). Without `hosts` they get PHALANX_RENDEZVOUS too, the
/// file:// URL where ranks meet, which is gone when this process is, however that and they end. They call
/// end_with_launcher() and run their work under run_rank().
///
/// Standard output of the ranks passes through. What ranks write to standard error passes through too, line by line;
/// mpirun's own notices are kept back, and shown only where no rank left a failure that explains the end.
///
/// Failures as in launch_local(), but mpirun itself ends the others, at once, when a rank ends with a status other than
/// 0; so ranks that stop when asked end together (MPI_Finalize does that). A first SIGINT, SIGTERM, SIGUSR1 or SIGHUP
/// reaches the ranks as SIGUSR1; a second SIGINT or SIGTERM, or the end of the time that `stopping` leaves after
/// SIGTERM, has mpirun end them, and standard error says so. mpirun has a process group of its own: the terminal's
/// Ctrl-C reaches this process alone. When this process is killed, mpirun ends the ranks; when mpirun is killed, they
/// end by end_with_launcher().
///
/// Call in the main thread, with no other. Throws ConfigError without mpirun or command, Error when it cannot start.
int launch_mpi(const MpiLaunch& options);

}  // namespace phalanx
