// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>

// How processes that start and stop each other handle signals.
namespace phalanx {

/// timeout(1) and similar programs send a signal to the process and then to its group. No person is that fast, so a
/// signal within this time of the first interrupt does not count as a second one.
inline constexpr std::chrono::milliseconds kSameInterrupt{200};

/// Whether this process ignores the signal, as nohup arranges for SIGHUP, and a shell for SIGINT of the jobs that it
/// starts in the background. Such a signal gets no handler.
inline bool ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Whether a process currently has a handler for this signal, according to /proc. False if there is no such process.
bool catches(pid_t process, int signal);

/// Makes the kernel send `signal` to this process when the thread that forked it ends, however it ends. Persists over
/// exec(), but not over fork(). Async-signal-safe.
///
/// Where `parent`, the process of that thread, has ended already, this process ends at once with kInterrupted.
void die_with_parent(int signal, pid_t parent);

}  // namespace phalanx
