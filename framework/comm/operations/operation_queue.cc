// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/operation_queue.h"

#include <chrono>
#include <mutex>
#include <stdexcept>

namespace phalanx {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

thread_local int running_operations = 0;  // one within the other

}  // namespace

void OperationQueue::Fifo::push(EntryPtr entry) {
  Entry* const last = entry.get();
  (empty() ? first_ : last_->next_) = std::move(entry);
  last_ = last;
}

OperationQueue::EntryPtr OperationQueue::Fifo::pop() {
  auto entry = std::move(first_);
  first_ = std::move(entry->next_);
  return entry;
}

bool OperationQueue::runs_operation() { return running_operations > 0; }

OperationQueue::~OperationQueue() {
  line_->stop();
  if (!thread_.joinable()) return;
  // The last operation may have held the owner of the queue. Then the progress thread itself runs this destructor.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void OperationQueue::start_progress_thread() {
  if (!thread_.joinable()) thread_ = std::thread([line = line_] { line->run_until_stopped(); });
}

void OperationQueue::Entry::wait() {
  if (!done()) line_->run_through(this);
  if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

// An operation that another thread runs has begun on this rank before the exception, so its peers get there as well.
void OperationQueue::Entry::abandon() {
  if (!can_leave() || taken_.exchange(true, std::memory_order_acq_rel)) return wait();
  leave();
  line_->recorder.finished(ticket_, false);
  done_.store(true, std::memory_order_release);
}

// Does nothing if the operation was abandoned.
void OperationQueue::Entry::execute() noexcept {
  if (taken_.exchange(true, std::memory_order_acq_rel)) return;
  line_->recorder.started(ticket_);
  ++running_operations;
  try {
    run();
  } catch (...) {
    error_ = std::current_exception();
  }
  --running_operations;
  line_->recorder.finished(ticket_, error_ == nullptr);
  done_.store(true, std::memory_order_release);
}

void OperationQueue::Line::append(EntryPtr operation) {
  if (runs_here()) {
    inner_.push(std::move(operation));
    return;
  }
  {
    const std::lock_guard lock(lock_);
    pending_.push(std::move(operation));
  }
  wake_progress_thread();
}

// A thread that waits for an operation that is done returns at once, even while another thread runs later ones.
void OperationQueue::Line::run_through(const Entry* last) {
  if (runs_here()) {
    run_inner(last);
    if (last != nullptr && !last->done()) {
      throw std::logic_error("an operation waits for another one that was launched after it and from outside of it");
    }
    return;
  }
  for (;;) {
    const auto ran = ran_.load(std::memory_order_acquire);
    if (last != nullptr && last->done()) return;
    if (auto next = take()) {
      run(std::move(next));
      continue;
    }
    {
      const std::lock_guard lock(lock_);
      if (!running_ && pending_.empty()) return;
    }
    ran_.wait(ran, std::memory_order_acquire);
  }
}

// Returns the next operation for the caller to run, or null if the queue is empty or another thread runs one.
OperationQueue::EntryPtr OperationQueue::Line::take() {
  const std::lock_guard lock(lock_);
  if (running_ || pending_.empty()) return nullptr;
  running_ = true;
  return pending_.pop();
}

void OperationQueue::Line::run(EntryPtr next) {
  runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  run_with_inner(*next);
  runner_.store({}, std::memory_order_relaxed);
  {
    const std::lock_guard lock(lock_);
    running_ = false;
  }
  ran_.fetch_add(1, std::memory_order_release);
  ran_.notify_all();
  wake_progress_thread();
}

// Operations that an operation launches finish before those that were launched next to it.
void OperationQueue::Line::run_with_inner(Entry& operation) {
  auto siblings = std::exchange(inner_, {});
  operation.execute();
  run_inner(nullptr);
  inner_ = std::move(siblings);
}

void OperationQueue::Line::run_inner(const Entry* last) {
  while (!inner_.empty() && (last == nullptr || !last->done())) {
    const auto next = inner_.pop();
    run_with_inner(*next);
  }
}

void OperationQueue::Line::run_until_stopped() {
  while (!stopped_.load(std::memory_order_acquire)) {
    const auto calls = calls_.load(std::memory_order_acquire);
    auto next = take();
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (!next && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      next = take();
    }
    // A launching thread reads sleeping_ after releasing the lock that take() needs, so one of the two sees the other.
    sleeping_.store(true, std::memory_order_relaxed);
    if (!next) next = take();
    if (!next && !stopped_.load(std::memory_order_acquire)) calls_.wait(calls, std::memory_order_acquire);
    sleeping_.store(false, std::memory_order_relaxed);
    if (next) run(std::move(next));
  }
}

void OperationQueue::Line::wake_progress_thread() {
  if (!sleeping_.load(std::memory_order_relaxed)) return;
  calls_.fetch_add(1, std::memory_order_release);
  calls_.notify_one();
}

void OperationQueue::Line::stop() {
  stopped_.store(true, std::memory_order_release);
  calls_.fetch_add(1, std::memory_order_release);
  calls_.notify_one();
}

}  // namespace phalanx
