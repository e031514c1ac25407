#pragma once

namespace phalanx {

/// Which signals ask this process to stop after the current step.
enum class StopOn {
  kInterrupt,  // SIGINT, SIGTERM, SIGHUP, SIGUSR1: a process at the terminal; a SIGINT 0.2 s or more after the first of
               // them ends it at once with status 130
  kLauncher,   // SIGTERM, SIGUSR1; SIGINT and SIGHUP are ignored, since the terminal sends them to launcher and ranks
};

/// Installs the handlers for the whole process. Call it before there are other threads. A SIGHUP that is ignored
/// (nohup) stays ignored. Interrupted system calls are restarted where possible (SA_RESTART).
void install_stop_signal(StopOn on);

/// Whether a stop has been requested. Async-signal-safe; may be called from any thread.
bool stop_requested();

}  // namespace phalanx
