// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/local/event_loop.h"
#include "launch/signals/signal_watch.h"
#include "launch/signals/stop_messages.h"

namespace phalanx {

/// Manages child processes from their start until all have ended. While waiting, it sleeps in poll().
///
/// The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP asks the children to stop, with Policy::stop, and prints a message on
/// the console at once. There is no deadline, since a checkpoint may take long, except after SIGTERM, whose sender will
/// not wait forever. A second SIGINT or SIGTERM ends the children and prints another message; a second SIGHUP does not,
/// since a closed terminal may hang up twice. When one child fails, the others get some time to end by themselves and
/// are then ended as well, unless they go on without it. No child outlives this object or this process, in whatever way
/// the process ends.
///
/// Not thread-safe. Only one object may exist at a time, created and used in the only thread of a process.
class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// A signal sent to all remaining children, at a given time after the supervisor has begun to end them.
  struct KillStage {
    std::chrono::milliseconds after;
    int signal;
  };

  /// The end of a child.
  struct End {
    int child;           // index in the order of start(), from 0
    int status;          // value returned by wait()
    double time;         // seconds since the epoch
    bool by_supervisor;  // caused by a signal from this supervisor
    bool stopped;        // killed because it was stopped for too long (Policy::stopped)
  };

  struct Policy {
    int stop;                              // the signal that asks a child to stop
    int orphaned;                          // the signal that a child gets when this process ends
    std::vector<KillStage> after_failure;  // times from the first failure
    std::vector<KillStage> forced;         // times from the second interrupt, or from the end of StopPolicy::grace

    /// For children that forward `stop` but may not be ready to do so: they get it once they have a handler for it, or
    /// after 3 s, and then repeatedly at this interval until they have ended. 0: they get it only once.
    std::chrono::milliseconds repeat_stop{0};

    /// A child that is stopped (SIGSTOP) for this time, while this process and another child run, is killed. 0: never.
    std::chrono::milliseconds stopped{0};

    /// Returns true if the others go on without a child that has failed. Called while at least one of them is left.
    /// Null: they never do.
    std::function<bool(const End&)> goes_on = {};

    /// Is called with each end, after `goes_on` has said whether the others go on. Null: nobody asks.
    std::function<void(const End&)> ended = {};

    /// There are others that are not children of this process, and may go on without all of its children.
    bool others_elsewhere = false;

    /// Returns true if the others have gone on without this child, which may still be there. Children are ended once
    /// only such ones, and those that wait, are left. Null: there are none.
    std::function<bool(int child)> is_lost = {};

    /// Returns true if more children may be started after all have ended. Then run() waits for this, unless it was
    /// asked to stop or begins to end the children. Null: there are never more.
    std::function<bool()> expects_more = {};

    /// Returns true if a child does not belong to the job yet: it waits until the others let it take part. The job does
    /// not go on with such children alone, which are killed once only they are left. Null: there are none.
    std::function<bool(int child)> waits = {};

    /// Lets a child know of a signal by other means than kill(). Returns false if it has to get the signal as well.
    /// Null: there are no other means.
    std::function<bool(int child, int signal)> deliver = {};

    StopPolicy stop_policy{};                          // for the messages on the console
    std::function<std::string()> describe_saved = {};  // describes the saved state of children that were ended early
    bool quiet = false;                                // prints no messages: another process does
  };

  explicit Supervisor(Policy policy) : policy_(std::move(policy)) {}
  ~Supervisor();  // kills the remaining children
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Forks a child that runs `body`, which must not throw, and exits with its result, using _exit(): neither
  /// destructors of globals nor atexit handlers run. The child's signal handling is that before this object was
  /// created. Throws Error.
  void start(const std::function<int()>& body);

  /// Makes run() call `readable` whenever `fd`, which is not owned, has data or has reached its end. `readable` returns
  /// false at the end, and is then not called again: a socket would otherwise be ready forever. It may start children
  /// and watch more descriptors.
  void watch(int fd, std::function<bool()> readable) { events_.watch(fd, std::move(readable)); }

  /// Makes run() call `action` at this interval and whenever a child has ended, after it has passed on what can be
  /// read, and before it looks for children that have ended.
  void repeat(std::chrono::milliseconds interval, std::function<void()> action) {
    events_.repeat(interval, std::move(action));
  }

  /// Waits until all children have ended, and no more are expected. Returns their ends in the order in which they
  /// happened.
  std::vector<End> run();

  /// Makes run() call `action` after this time, which may start a child, unless the children have been asked to stop or
  /// begin to be ended by then. run() does not wait for it if no child is left. For use in Policy::goes_on.
  void call_after(std::chrono::milliseconds delay, std::function<void()> action) {
    events_.call_after(delay, std::move(action));
  }

  /// Returns the number of children that have been started.
  int children() const { return static_cast<int>(children_.size()); }

  /// For use in `readable`. Start to end the children, as after a failure; ask them to stop, as the first signal does,
  /// without a message; and kill them, without a message.
  void begin_shutdown();
  void stop();
  void end_now();

  /// For use in `readable` and `action`. Kill one child, which has ended then as if it had failed by itself; and return
  /// true if a child, by its index, has not ended.
  void kill(int child);
  bool is_running(int child) const { return children_.at(static_cast<std::size_t>(child)).alive; }

  /// For use after run(). Waits this long for a signal that asks to stop. Returns true as soon as there is one.
  bool is_stopped_within(std::chrono::milliseconds time) { return signals_.is_stopped_within(time); }

  bool interrupted() const { return interrupted_at_.has_value(); }

  /// Returns true once the children have been asked to stop or begin to be ended. No signal may come for a child that
  /// is started after that, so none should be.
  bool is_ending() const { return interrupted() || phase_ != Phase::kRunning; }

 private:
  enum class Phase { kRunning, kShuttingDown, kEnding };

  struct Child {
    pid_t pid;
    bool alive = true;
    std::vector<int> sent{};
    std::optional<Clock::time_point> stopped_since{};
    bool killed_as_stopped = false;
  };

  void handle_signals();
  void interrupt(int signal);
  bool anyone_left() const;
  bool waits(std::size_t child) const { return policy_.waits && policy_.waits(static_cast<int>(child)); }
  void end_waiting_ones();
  void force_end(bool by_user);
  void request_stop();
  bool repeats_stop() const;
  void reap();
  void end_lost_ones();
  bool watches_for_stopped() const;
  void kill_stopped();
  bool expects_more() const;
  void escalate(Phase phase, const std::vector<KillStage>& stages);
  void send_due_signals();
  void send(int signal);
  void send(Child& child, int signal);
  std::optional<Clock::time_point> next_deadline() const;
  bool any_alive() const;

  Policy policy_;
  SignalWatch signals_;
  std::vector<Child> children_;
  std::vector<End> ends_;
  EventLoop events_;
  Phase phase_ = Phase::kRunning;
  std::optional<Clock::time_point> interrupted_at_;
  std::optional<Clock::time_point> end_at_;  // time at which children that have not stopped are ended
  Clock::time_point next_stop_;              // next repetition of the stop signal
  Clock::time_point last_look_;              // for stopped children
  Clock::time_point escalation_start_;
  std::vector<KillStage> escalation_;  // remaining signals, the next one first
};

}  // namespace phalanx
