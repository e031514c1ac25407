#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>

// What processes that start and stop each other ask and tell the system about signals.
namespace phalanx {

/// timeout(1) and the like send a signal to the process and again to its group. No person is that fast: what comes
/// within this time of the first interrupt is no second one.
inline constexpr std::chrono::milliseconds kSameInterrupt{200};

/// Whether this process ignores the signal, as nohup has it with SIGHUP.
inline bool ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Whether a process has a handler for this signal now, as /proc tells. False where there is no such process.
bool catches(pid_t process, int signal);

/// From now on the kernel sends `signal` to this process when the thread that forked it ends, in whichever way. Holds
/// over exec(), not over fork(). Async-signal-safe.
///
/// Where `parent`, the process of that thread, has ended already, this process ends at once with kInterrupted.
void die_with_parent(int signal, pid_t parent);

}  // namespace phalanx
