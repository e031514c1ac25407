#pragma once

#include <signal.h>

#include <chrono>

namespace phalanx {

/// timeout(1) and the like send a signal to the process and again to its group. No person is that fast: what comes
/// within this time of the first interrupt is no second one.
inline constexpr std::chrono::milliseconds kSameInterrupt{200};

/// Whether this process ignores the signal, as nohup has it with SIGHUP.
inline bool ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace phalanx
