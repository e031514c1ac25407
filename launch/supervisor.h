// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/signal_watch.h"
#include "launch/stop_words.h"

namespace phalanx {

/// Child processes, from their start until all have ended. Meanwhile it sleeps in poll().
///
/// A first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks the children to stop, with Policy::stop; the console is told so at
/// once. There is no deadline, since a checkpoint may take long, but SIGTERM's, for who sends it will not wait for
/// ever. A second SIGINT or SIGTERM ends them, which is told too; a closed terminal may hang up twice. When one fails
/// the others are ended as well, after a while in which they can do so by themselves. No child outlives this object,
/// nor this process, in whichever way that ends.
///
/// Not thread-safe. Only one at a time, created and used in the only thread of a process.
class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// A signal for all remaining children, at some time after their end was initiated.
  struct Blow {
    std::chrono::milliseconds after;
    int signal;
  };

  struct Policy {
    int stop;                         // the signal that asks a child to stop
    int orphaned;                     // the signal that a child gets when this process ends
    std::vector<Blow> after_failure;  // times from the first failure
    std::vector<Blow> at_once;        // times from the second interrupt, or from the end of Stopping::grace

    /// For children that pass `stop` on and may not be ready to: they get it once they catch it, or after 3 s, and then
    /// repeatedly at this interval until they have ended. 0: they get it only once.
    std::chrono::milliseconds repeat_stop{0};

    Stopping stopping{};                     // for what the console is told
    std::function<std::string()> kept = {};  // what is left of children that are ended before they have stopped
  };

  /// How a child ended.
  struct End {
    int child;    // from 0, in order of start()
    int status;   // as wait() gives it
    double time;  // seconds since the epoch
    bool by_us;   // of a signal sent by this supervisor
  };

  explicit Supervisor(Policy policy) : policy_(std::move(policy)) {}
  ~Supervisor();  // kills what is left
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Forks a child that runs `body`, which must not throw, and exits with its result, using _exit(): neither
  /// destructors of globals nor atexit handlers run. In the child, signals are as they were before this object existed.
  /// Throws Error.
  void start(const std::function<int()>& body);

  /// Makes run() call `readable` whenever `fd`, which is not owned, has data or is at its end.
  void watch(int fd, std::function<void()> readable);

  /// Waits until all children have ended. Returns their ends in order.
  std::vector<End> run();

  /// Starts ending the children, as after a failure. For use in `readable`.
  void wind_down();

  bool interrupted() const { return interrupted_at_.has_value(); }

 private:
  enum class Phase { kRunning, kWindingDown, kEnding };

  struct Child {
    pid_t pid;
    bool alive = true;
    std::vector<int> sent{};
  };

  struct Watched {
    int fd;
    std::function<void()> readable;
  };

  void wait_for_something();
  void take_signals();
  void interrupt(int signal);
  void end_now(bool asked_again);
  void ask_to_stop();
  bool asking() const;
  void reap();
  void escalate(Phase phase, const std::vector<Blow>& blows);
  void strike();
  void send(int signal);
  static void send(Child& child, int signal);
  std::optional<Clock::time_point> next_deadline() const;
  bool any_alive() const;

  Policy policy_;
  SignalWatch signals_;
  std::vector<Child> children_;
  std::vector<End> ends_;
  std::vector<Watched> watched_;
  Phase phase_ = Phase::kRunning;
  std::optional<Clock::time_point> interrupted_at_;
  std::optional<Clock::time_point> end_at_;  // unless all have stopped
  Clock::time_point next_stop_;              // while asking
  Clock::time_point escalation_start_;
  std::vector<Blow> escalation_;  // blows still to come, the next one first
};

}  // namespace phalanx
