// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/wakeup.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/agents/beats.h"

namespace phalanx {

/// An agent's end of the connection to its launcher, and the lease of its host (beats.h). A thread of its own sends the
/// beats and reads what the launcher sends. It touches no file, so while the agent waits for a disk that hangs, the
/// launcher goes on hearing the host, and the ranks keep their lease.
///
/// Thread-safe.
class LauncherLink {
 public:
  /// Reads from `input`, which it makes non-blocking, and writes beats to `launcher`; it owns neither. The first lease,
  /// of this length, begins now. The numbers of the job's ranks are less than `numbers`. Throws Error if the system has
  /// no memory or descriptor left.
  LauncherLink(int input, Console& launcher, std::chrono::nanoseconds length, int numbers);
  ~LauncherLink();
  LauncherLink(const LauncherLink&) = delete;
  LauncherLink& operator=(const LauncherLink&) = delete;

  /// Returns the lease of the ranks of this host, for processes that are forked later.
  const std::shared_ptr<HostLease>& lease() const { return of_ranks_; }

  /// Starts the thread, which handles no signals. Processes that are forked afterwards must not use this object.
  void start();

  /// The events since the last call of take().
  struct News {
    std::vector<std::string> orders{};  // lines of the launcher, without those about leases
    bool ended = false;                 // the launcher, or the connection to it, is gone
    bool lease_is_over = false;
  };

  /// Becomes readable when there is news.
  int fd() const { return news_.descriptor(); }

  /// Returns the news. Does not block. Reads what the launcher has sent before it decides that the lease is over: this
  /// process may have been stopped.
  News take();

 private:
  void run();
  void move();
  void read_input();
  void obey(const std::string& line);

  const int input_;
  const std::chrono::milliseconds interval_;
  AgentLease lease_;
  const std::shared_ptr<HostLease> of_ranks_;
  Console& launcher_;
  const Wakeup news_{"cannot run ranks for a launcher"};  // wakes the thread that takes the news
  const Wakeup stop_{"cannot run ranks for a launcher"};  // of the thread

  std::mutex mutex_;  // guards the rest, the lease and the beats
  std::chrono::nanoseconds next_beat_{};
  std::string pending_;  // the beginning of a line
  News unread_;
  bool ended_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace phalanx
