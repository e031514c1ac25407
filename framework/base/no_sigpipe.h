// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <ctime>

namespace phalanx {

/// As long as it lives, what this thread writes to a pipe or socket that nobody reads is an error of that write, and no
/// SIGPIPE that would end the process. Not for the whole process: programs rely on it to end with the reader of their
/// output. For use in signal handlers too.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    pending_before_ = pending();
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    constexpr std::timespec kAtOnce{};
    if (!pending_before_ && pending()) ::sigtimedwait(&pipe_, nullptr, &kAtOnce);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  static bool pending() {
    sigset_t signals;
    ::sigpending(&signals);
    return ::sigismember(&signals, SIGPIPE) == 1;
  }

  sigset_t pipe_, before_;
  bool pending_before_ = false;
};

}  // namespace phalanx
