// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace phalanx {

/// As long as it lives, no signal but SIGKILL and SIGSTOP reaches this thread, nor the threads and processes that it
/// starts meanwhile.
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
