// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace phalanx {

/// While an object of this class lives, its thread receives no signal except SIGKILL and SIGSTOP. Threads and processes
/// that this thread starts during that time inherit the mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace phalanx
