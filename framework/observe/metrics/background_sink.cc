// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/background_sink.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr Seconds kLastMoment{1};

}  // namespace

// Shared with the thread, which may outlive the object.
struct BackgroundSink::State {
  explicit State(std::unique_ptr<MetricsSink> to) : sink(std::move(to)) {}

  std::unique_ptr<MetricsSink> sink;  // used by the thread only
  std::mutex mutex{};                 // guards the members below
  std::condition_variable changed{};
  std::deque<MetricsRecord> waiting{};
  std::exception_ptr problem{};
  bool busy = false, over = false;

  bool idle() const { return waiting.empty() && !busy && !problem; }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      const auto has_work = [this] { return over || !waiting.empty(); };
      if (problem) {
        changed.wait_for(lock, kPause, has_work);
      } else {
        changed.wait(lock, has_work);
      }
      if (over && (waiting.empty() || problem)) return;
      take(lock);
    }
  }

  // Passes on the next record, or lets the sink try again.
  void take(std::unique_lock<std::mutex>& lock) {
    std::deque<MetricsRecord> next;
    if (!waiting.empty()) {
      next.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    busy = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      next.empty() ? sink->retry() : sink->add(next.front());
    } catch (const DataError&) {
      failure = std::current_exception();
    }
    lock.lock();
    problem = failure;
    busy = false;
    changed.notify_all();
  }
};

BackgroundSink::BackgroundSink(std::unique_ptr<MetricsSink> sink) : state_(std::make_shared<State>(std::move(sink))) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  std::thread([state = state_] {
    state->run();
    state->sink.reset();
    const std::lock_guard lock(state->mutex);
    state->busy = false;
    state->over = false;
    state->changed.notify_all();
  }).detach();
}

BackgroundSink::~BackgroundSink() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kLastMoment, [this] { return !state_->over; });
}

void BackgroundSink::add(const MetricsRecord& record) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() >= kMostWaiting) {
    throw DataError(std::to_string(kMostWaiting) + " records of metrics wait for the disk; further ones are dropped");
  }
  state_->waiting.push_back(record);
  state_->changed.notify_all();
  if (state_->problem) std::rethrow_exception(state_->problem);
}

void BackgroundSink::flush(Seconds limit) {
  std::unique_lock lock(state_->mutex);
  if (state_->changed.wait_for(lock, limit, [this] { return state_->idle(); })) return;
  if (state_->problem) std::rethrow_exception(state_->problem);
  throw DataError(format_text("the disk has not taken the metrics within %g s", limit.count()));
}

}  // namespace phalanx
