#include "framework/comm/operation_queue.h"

namespace phalanx {

void OperationQueue::Operation::wait() {
  if (!done()) queue_.run_through(this);
  if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void OperationQueue::Operation::execute() noexcept {
  try {
    run();
  } catch (...) {
    error_ = std::current_exception();
  }
  done_.store(true, std::memory_order_release);
}

void OperationQueue::drain() { run_through(nullptr); }

void OperationQueue::run_through(const Operation* last) {
  std::lock_guard running(running_mutex_);
  while (last == nullptr || !last->done()) {
    std::shared_ptr<Operation> next;
    {
      std::lock_guard lock(pending_mutex_);
      if (pending_.empty()) return;
      next = std::move(pending_.front());
      pending_.pop_front();
    }
    next->execute();
  }
}

}  // namespace phalanx
