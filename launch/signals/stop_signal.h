// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/signals/stop_messages.h"

namespace phalanx {

/// Selects the signals that ask this process to stop after the current step.
enum class StopOn {
  kInterrupt,  // a process at the terminal: SIGINT, SIGTERM, SIGHUP, SIGUSR1; a SIGINT 0.2 s or more after the first
               // of them ends it at once with status 130
  kLauncher,   // a rank: SIGTERM, SIGUSR1; SIGINT and SIGHUP are ignored, since the launcher gets them as well
};

/// Installs the handlers for the whole process. Must be called before other threads exist. A signal that is ignored
/// (see ignored()) stays ignored, except for the signals with which a launcher asks its ranks to stop. System calls
/// that are interrupted by a handler are restarted if possible (SA_RESTART).
///
/// A process at the terminal that has not stopped within `stop_policy.grace` after SIGTERM is ended by alarm() with
/// status 130. If `speaks` is true, the process prints to standard error what a signal causes.
void install_stop_signal(StopOn on, const StopPolicy& stop_policy = {}, bool speaks = false);

/// Returns true if a stop has been requested. Async-signal-safe; may be called from any thread.
bool stop_requested();

}  // namespace phalanx
