// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/stop_words.h"

namespace phalanx {

/// Which signals ask this process to stop after the current step.
enum class StopOn {
  kInterrupt,  // SIGINT, SIGTERM, SIGHUP, SIGUSR1: a process at the terminal; a SIGINT 0.2 s or more after the first of
               // them ends it at once with status 130
  kLauncher,   // SIGTERM, SIGUSR1; SIGINT and SIGHUP are ignored, since the terminal sends them to launcher and ranks
};

/// Installs the handlers for the whole process. Call before threads exist. A signal that is ignored (see ignored())
/// stays so, except for those by which a launcher asks its ranks to stop.
/// System calls that a handler breaks into are restarted where the system can (SA_RESTART).
///
/// A process at the terminal ends with status 130 where it has not by the end of `stopping.grace` after SIGTERM, by
/// alarm(). It says on standard error what a signal brings about, if it `speaks`.
void install_stop_signal(StopOn on, const Stopping& stopping = {}, bool speaks = false);

/// Whether a stop has been requested. Async-signal-safe; may be called from any thread.
bool stop_requested();

}  // namespace phalanx
