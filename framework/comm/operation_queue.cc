#include "framework/comm/operation_queue.h"

namespace phalanx {

void OperationQueue::Operation::wait() {
  if (!done()) line_->run_through(this);
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

void OperationQueue::Line::append(std::shared_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(operation));
}

// Whoever waits for an operation that is done goes on at once, also while another thread runs later ones.
void OperationQueue::Line::run_through(const Operation* last) {
  std::unique_lock lock(mutex_);
  while (last != nullptr ? !last->done() : running_ || !pending_.empty()) {
    if (running_) {
      ran_.wait(lock);
      continue;
    }
    const auto next = std::move(pending_.front());
    pending_.pop_front();
    running_ = true;
    lock.unlock();
    next->execute();
    lock.lock();
    running_ = false;
    ran_.notify_all();
  }
}

}  // namespace phalanx
