// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <ctime>

namespace phalanx {

/// While an object of this class lives, writing to a pipe or socket that no one reads fails with EPIPE in this thread
/// instead of raising SIGPIPE, which would end the process. Other threads are not affected, because programs rely on
/// ending with the reader of their output. May be used in signal handlers.
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
