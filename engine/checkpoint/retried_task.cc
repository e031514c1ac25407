// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/retried_task.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"

namespace phalanx {

// Shared with the thread, which may outlive the object.
struct RetriedTask::State {
  State(std::function<void()> what, Seconds between) : task(std::move(what)), pause(between) {}

  std::function<void()> task;
  Seconds pause;
  std::mutex mutex{};  // guards the members below
  std::condition_variable changed{};
  bool gives_up = false, ended = false;
  std::string trouble{};
  std::exception_ptr failure{};

  // Returns true if the task has to be tried again.
  bool attempt() {
    std::exception_ptr error;
    std::string why;
    bool final = true;
    try {
      task();
    } catch (const DataError& refused) {
      error = std::current_exception();
      why = refused.what();
      final = false;
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex);
    trouble = why;
    if (error && !final) final = changed.wait_for(lock, pause, [this] { return gives_up; });
    if (error && !final) return true;
    failure = error;
    ended = true;
    changed.notify_all();
    return false;
  }
};

RetriedTask::RetriedTask(std::function<void()> task, Seconds pause)
    : state_(std::make_shared<State>(std::move(task), pause)) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  std::thread([state = state_] {
    while (state->attempt()) {
    }
    state->task = nullptr;  // frees what it owns
  }).detach();
}

RetriedTask::~RetriedTask() { give_up(); }

bool RetriedTask::wait(Seconds limit) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [this] { return state_->ended; });
}

std::string RetriedTask::trouble() const {
  const std::lock_guard lock(state_->mutex);
  return state_->trouble;
}

void RetriedTask::give_up() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->gives_up = true;
  }
  state_->changed.notify_all();
}

void RetriedTask::check() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace phalanx
