// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/work.h"

namespace phalanx {

/// A mutex for critical sections of a few instructions. It costs half as much as std::mutex if it is not contended,
/// which is nearly always the case. Lockable: for std::lock_guard.
class SpinLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

/// The launched but unfinished operations of one rank, over all communicators that were split from one world.
///
/// Launching only appends. Operations run in the order of launch, either in the thread that first waits for one of them
/// or for a later one, or in the progress thread if there is one. So ranks that launch in the same order cannot block
/// each other, even if they wait in different orders. Launching costs one allocation and an uncontended lock.
///
/// An operation that is launched by a running operation belongs to it: it runs in the same thread when it is waited
/// for, before anything that was launched outside.
///
/// Thread-safe. A Work may outlive the queue.
class OperationQueue {
 public:
  OperationQueue() : line_(std::make_shared<Line>()) {}
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  /// Starts a thread of the queue that runs launched operations even if no thread waits for them. It sleeps after some
  /// 50 us without work; waking it then costs the launching thread a few microseconds.
  void start_progress_thread();
  bool has_progress_thread() const { return thread_.joinable(); }

  /// Launches an operation. `run` performs it and blocks until it is done or throws; it owns the tensors it works on.
  template <class Run>
  Work launch(FlightRecorder::Group& group, const Call& call, Run&& run) {
    return launch(group, call, std::forward<Run>(run), nullptr);
  }

  /// Does the same for an operation that is not run if an exception destroys its Work before that. Then `leave` breaks
  /// the group on this rank, so that its peers do not wait for the operation, and so that later operations cannot take
  /// its place. It is called once at most, while `run` still exists, and must neither block nor throw.
  template <class Run, class Leave>
  Work launch(FlightRecorder::Group& group, const Call& call, Run&& run, Leave leave) {
    auto operation = std::make_shared<EntryOf<std::decay_t<Run>, Leave>>(line_, std::forward<Run>(run), leave);
    operation->ticket_ = line_->recorder.launched(group, call);
    line_->append(operation);
    return Work(std::move(operation));
  }

  /// Runs everything that was launched, in order. Errors stay with their operations.
  void drain() { line_->run_through(nullptr); }

  FlightRecorder& recorder() { return line_->recorder; }

  /// Returns true if this thread runs an operation of any queue now.
  static bool runs_operation();

 private:
  class Entry;
  using EntryPtr = std::shared_ptr<Entry>;

  // Entries in order of launch, linked through Entry::next_. Adding or removing one allocates nothing.
  class Fifo {
   public:
    bool empty() const { return first_ == nullptr; }
    void push(EntryPtr entry);
    EntryPtr pop();  // must not be empty

   private:
    EntryPtr first_;
    Entry* last_ = nullptr;  // valid unless empty
  };

  // Shared with the operations, because an operation may hold the owner of the queue.
  class Line {
   public:
    void append(EntryPtr operation);
    void run_through(const Entry* last);  // null: through all operations that are launched before it returns
    void run_until_stopped();             // the loop of the progress thread
    void stop();

    FlightRecorder recorder;

   private:
    bool runs_here() const { return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
    EntryPtr take();
    void run(EntryPtr next);
    void run_with_inner(Entry& operation);
    void run_inner(const Entry* last);
    void wake_progress_thread();

    SpinLock lock_;  // never held while an operation runs
    Fifo pending_;
    bool running_ = false;
    std::atomic<std::uint32_t> ran_{0};  // operations, modulo 2^32; threads that cannot run any wait for a change

    std::atomic<std::thread::id> runner_{};  // thread that runs an operation now
    Fifo inner_;                             // launched by the running operation; used only by the runner

    std::atomic<bool> sleeping_{false};  // true while the progress thread waits for calls_ to change
    std::atomic<std::uint32_t> calls_{0};
    std::atomic<bool> stopped_{false};
  };

  class Entry : public Work::State, public Abandonable {
   public:
    explicit Entry(const std::shared_ptr<Line>& line) : line_(line) {}
    void wait() final;
    void abandon() final;
    bool done() const final { return done_.load(std::memory_order_acquire); }
    void execute() noexcept;

   private:
    friend class OperationQueue;
    // One of the two is called once; the tensors are released afterwards.
    virtual void run() = 0;
    virtual void leave() = 0;
    virtual bool can_leave() const = 0;

    std::shared_ptr<Line> line_;
    EntryPtr next_;  // in a Fifo
    FlightRecorder::Ticket ticket_;
    std::exception_ptr error_;
    std::atomic<bool> taken_{false};  // by the thread that runs it, or leaves it
    std::atomic<bool> done_{false};
  };

  template <class Run, class Leave>
  class EntryOf final : public Entry {
   public:
    template <class From>
    EntryOf(const std::shared_ptr<Line>& line, From&& run, Leave leave)
        : Entry(line), run_(std::in_place, std::forward<From>(run)), leave_(std::move(leave)) {}

   private:
    struct Release {
      ~Release() { run.reset(); }
      std::optional<Run>& run;
    };

    void run() override {
      const Release release{run_};
      (*run_)();
    }
    void leave() override {
      const Release release{run_};
      if constexpr (!std::is_null_pointer_v<Leave>) leave_();
    }
    bool can_leave() const override { return !std::is_null_pointer_v<Leave>; }

    std::optional<Run> run_;
    [[no_unique_address]] Leave leave_;
  };

  std::shared_ptr<Line> line_;
  std::thread thread_;
};

}  // namespace phalanx
