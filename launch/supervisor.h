#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "launch/signal_watch.h"

namespace phalanx {

/// Child processes, from their start until all have ended. Between start and end it sleeps in poll().
///
/// A first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks the children to stop, with Policy::stop and without a deadline: a
/// checkpoint may take long. A second SIGINT or SIGTERM ends them; a closed terminal may hang up twice. When one fails
/// the others are ended as well, after a while in which they can do so by themselves. No child outlives this object,
/// nor this process, in whichever way that ends.
///
/// Not thread-safe; one at a time, made and used in one thread of a process with no other.
class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// A signal for all children that are still there some time after the beginning of their end.
  struct Blow {
    std::chrono::milliseconds after;
    int signal;
  };

  struct Policy {
    int stop;                         // the signal that asks a child to stop
    int orphaned;                     // the signal that a child gets when this process ends
    std::vector<Blow> after_failure;  // times from the first failure
    std::vector<Blow> at_once;        // times from the second interrupt

    /// For children that pass `stop` on and may not be ready to: they get it once they catch it, or after 3 s, and
    /// again after each such time until they have ended. 0: they get it once, whatever it does.
    std::chrono::milliseconds repeat_stop{0};
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

  /// Forks a child that runs `body`, which must not throw, and ends with its result as exit status, by _exit(): neither
  /// destructors of globals nor atexit handlers run. Signals are in it as they were before this object. Throws Error.
  void start(const std::function<int()>& body);

  /// Has `readable` called in run() whenever `fd`, which is not owned, has something to read or is at its end.
  void watch(int fd, std::function<void()> readable);

  /// Waits until all children have ended; in order of their ends.
  std::vector<End> run();

  /// Begins the end, as after a failure; for use in `readable`.
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
  Clock::time_point next_stop_;  // while asking
  Clock::time_point escalation_start_;
  std::vector<Blow> escalation_;  // blows still to come, the next one first
};

}  // namespace phalanx
