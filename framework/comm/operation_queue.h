#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/comm/work.h"

namespace phalanx {

/// The launched but unfinished operations of one rank, over all communicators that were split from one world.
///
/// Launching only appends. Operations run in the order of launch, in the thread that first waits for one of them or for
/// a later one. So a rank needs no thread of its own for communication, and ranks that launch in the same order cannot
/// block each other, in whatever order they wait. Launching costs one allocation and an uncontended lock.
///
/// Thread-safe. A Work may outlive the queue.
class OperationQueue {
 public:
  OperationQueue() : line_(std::make_shared<Line>()) {}

  /// `run` does the operation and blocks until it is done or throws; it owns the tensors it works on.
  template <class Run>
  Work launch(Run run) {
    auto operation = std::make_shared<OperationOf<Run>>(line_, std::move(run));
    line_->append(operation);
    return Work(std::move(operation));
  }

  /// Runs everything that was launched, in order. Errors stay with their operations.
  void drain() { line_->run_through(nullptr); }

 private:
  class Operation;

  // Shared with the operations, since one of them may hold what owns the queue.
  class Line {
   public:
    void append(std::shared_ptr<Operation> operation);
    void run_through(const Operation* last);  // null: through all that were launched by now or meanwhile

   private:
    std::mutex mutex_;  // never held while an operation runs
    std::condition_variable ran_;
    bool running_ = false;
    std::deque<std::shared_ptr<Operation>> pending_;
  };

  class Operation : public Work::State {
   public:
    explicit Operation(std::shared_ptr<Line> line) : line_(std::move(line)) {}
    void wait() final;
    bool done() const final { return done_.load(std::memory_order_acquire); }
    void execute() noexcept;

   private:
    virtual void run() = 0;  // once; afterwards the tensors are released

    std::shared_ptr<Line> line_;
    std::exception_ptr error_;
    std::atomic<bool> done_{false};
  };

  template <class Run>
  class OperationOf final : public Operation {
   public:
    OperationOf(std::shared_ptr<Line> line, Run run) : Operation(std::move(line)), run_(std::move(run)) {}

   private:
    void run() override { std::exchange(run_, std::nullopt).value()(); }
    std::optional<Run> run_;
  };

  std::shared_ptr<Line> line_;
};

}  // namespace phalanx
