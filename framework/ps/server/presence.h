// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// Counts the clients of each job that are connected now and that have ever connected. Thread-safe.
class Presence {
 public:
  struct Count {
    int ever = 0, now = 0;
  };

  void add(const std::string& job, int change) {
    const std::lock_guard lock(mutex_);
    auto& count = counts_[job];
    count.now += change;
    count.ever += std::max(change, 0);
    changed_.notify_all();
  }

  /// Blocks until `holds` is true for the clients of a job, or until the deadline. Returns true if it holds.
  template <class Predicate>
  bool wait_until(const std::string& job, const Predicate& holds, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return holds(counts_[job]); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Count> counts_;
};

}  // namespace phalanx::ps
