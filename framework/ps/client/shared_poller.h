// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "framework/base/wakeup.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// Waits for a channel's socket on behalf of several threads that share a lock: only one of them polls at a time. All
/// functions except interrupt() must be called with the lock held.
class SharedPoller {
 public:
  /// Returns true if a thread polls now.
  bool is_polling() const { return polling_; }

  /// Releases the lock and blocks until the socket is ready, interrupt() is called, the deadline, or for a second.
  /// Returns true if the socket may be ready. No other thread may be polling.
  bool poll(std::unique_lock<std::mutex>& lock, const Channel& channel, Clock::time_point deadline);

  /// Wakes the polling thread, or the next one that polls.
  void interrupt() const { wakeup_.raise(); }

 private:
  bool polling_ = false;
  Wakeup wakeup_{"cannot connect to a parameter server"};
};

}  // namespace phalanx::ps
