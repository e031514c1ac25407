// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// Counts the clients of each job that are connected now, that have ever connected, and that were lost. Thread-safe.
class Presence {
 public:
  struct Count {
    int ever = 0, now = 0;
    int lost = 0;  // clients whose connection has ended although they had not left
  };

  void arrive(const std::string& job) {
    const std::lock_guard lock(mutex_);
    auto& count = counts_[job];
    ++count.now;
    ++count.ever;
    changed_.notify_all();
  }

  /// `left`: the client had announced that it leaves.
  void depart(const std::string& job, bool left) {
    const std::lock_guard lock(mutex_);
    auto& count = counts_[job];
    --count.now;
    count.lost += left ? 0 : 1;
    changed_.notify_all();
  }

  Count of(const std::string& job) {
    const std::lock_guard lock(mutex_);
    return counts_[job];
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
