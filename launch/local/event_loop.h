// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace phalanx {

/// The descriptors and times for which a single thread waits, and what it does then. The thread decides when: the
/// functions that it has been given are called by wait(), run_repeated() and call_planned() only. They may call watch()
/// and call_after(). Not thread-safe.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  /// Makes wait() call `readable` whenever `fd`, which is not owned, has data or has reached its end. `readable`
  /// returns false at the end, and is then not called again.
  void watch(int fd, std::function<bool()> readable);

  /// Makes run_repeated() call `action` at this interval, and in its next call after make_repeated_due().
  void repeat(std::chrono::milliseconds interval, std::function<void()> action);
  void make_repeated_due();

  /// Makes call_planned() call `action` once after this time, unless drop_planned() is called before.
  void call_after(std::chrono::milliseconds delay, std::function<void()> action);
  void drop_planned() { planned_.clear(); }

  /// Blocks until a watched descriptor or `fd` is readable, until an action is due, or until `deadline`. Returns early
  /// if a signal arrives.
  void wait(int fd, std::optional<Clock::time_point> deadline);

  void run_repeated();
  void call_planned();

 private:
  struct Repeated {
    std::chrono::milliseconds interval;
    std::function<void()> action;
    Clock::time_point next{};
  };

  struct Watched {
    int fd;
    std::function<bool()> readable;
  };

  struct Planned {
    Clock::time_point at;
    std::function<void()> action;
  };

  std::deque<Watched> watched_{};  // grows while its elements are in use
  std::vector<Repeated> repeated_{};
  std::vector<Planned> planned_{};
};

}  // namespace phalanx
