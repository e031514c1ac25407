#pragma once

#include <atomic>
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
class OperationQueue {
 public:
  /// `run` does the operation and blocks until it is done or throws; it owns the tensors it works on.
  template <class Run>
  Work launch(Run run) {
    auto operation = std::make_shared<OperationOf<Run>>(*this, std::move(run));
    std::lock_guard lock(pending_mutex_);
    pending_.push_back(operation);
    return Work(std::move(operation));
  }

  /// Runs everything that was launched, in order. Errors stay with their operations.
  void drain();

 private:
  class Operation : public Work::State {
   public:
    explicit Operation(OperationQueue& queue) : queue_(queue) {}
    void wait() final;
    bool done() const final { return done_.load(std::memory_order_acquire); }
    void execute() noexcept;

   private:
    virtual void run() = 0;  // once; afterwards the tensors are released

    OperationQueue& queue_;
    std::exception_ptr error_;
    std::atomic<bool> done_{false};
  };

  template <class Run>
  class OperationOf final : public Operation {
   public:
    OperationOf(OperationQueue& queue, Run run) : Operation(queue), run_(std::move(run)) {}

   private:
    void run() override { std::exchange(run_, std::nullopt).value()(); }
    std::optional<Run> run_;
  };

  void run_through(const Operation* last);

  std::mutex pending_mutex_;  // guards pending_; never held while an operation runs
  std::mutex running_mutex_;  // held by the thread that runs operations
  std::deque<std::shared_ptr<Operation>> pending_;
};

}  // namespace phalanx
