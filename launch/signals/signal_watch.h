// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <chrono>
#include <vector>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Makes SIGINT, SIGTERM, SIGUSR1, SIGHUP and SIGCHLD readable from a descriptor while this object exists. They are
/// blocked, so no handler runs at a bad moment and no signal is missed. Ignored signals, except SIGCHLD, stay ignored.
///
/// Only one object may exist at a time, in a process with a single thread. Throws Error if the system has no descriptor
/// left.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int fd() const { return fd_.get(); }  // readable when take() would return signals

  /// Returns the signals that arrived since the last call. Does not block.
  std::vector<int> take();

  /// Waits this long for a signal other than SIGCHLD, which asks to stop. Returns true as soon as there is one.
  bool is_stopped_within(std::chrono::milliseconds time);

  /// Restores the former signal handling in a child of fork(), and closes the descriptor.
  void restore_in_child();

 private:
  sigset_t old_mask_;
  struct sigaction old_child_action_;
  Descriptor fd_;
};

}  // namespace phalanx
