// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>

// Signal handling of processes that start and stop each other.
namespace phalanx {

/// timeout(1) and similar programs send a signal to the process and then to its group. No person is that fast, so a
/// signal within this time after the first interrupt does not count as a second one.
inline constexpr std::chrono::milliseconds kSameInterrupt{200};

/// Returns true if this process ignores the signal. nohup arranges that for SIGHUP, and a shell for SIGINT of
/// background jobs. Such a signal gets no handler.
inline bool ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Returns true if a process currently has a handler for this signal, according to /proc. Returns false if there is no
/// such process.
bool catches(pid_t process, int signal);

/// Makes the kernel send `signal` to this process when the thread that forked it ends, in whatever way. Persists over
/// exec(), but not over fork(). Async-signal-safe.
///
/// If `parent`, the process of that thread, has already ended, this process ends at once with kInterrupted.
void die_with_parent(int signal, pid_t parent);

}  // namespace phalanx
