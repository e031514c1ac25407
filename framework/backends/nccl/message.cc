// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/message.h"

#include <utility>

namespace phalanx::nccl {

Message::Message(const Operation& operation, std::string group, int device, std::shared_ptr<FlightRecorder> recorder,
                 FlightRecorder::Ticket ticket)
    : call_(operation.call),
      group_(std::move(group)),
      bytes_(operation.output.nbytes()),
      tensor_(operation.output),
      origin_{.stream = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)),
              .launched = {},
              .ticket = ticket},
      recorder_(std::move(recorder)) {
  origin_.launched.record(origin_.stream);
}

std::string Message::describe() const {
  return phalanx::describe(call_) + " #" + std::to_string(origin_.ticket.sequence) + " of " + group_;
}

void Message::take() {
  const std::lock_guard lock(mutex_);
  taken_ = true;
}

void Message::launched(Work work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    tensor_.reset();
    decided_ = true;
  }
  changed_.notify_all();
}

void Message::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    tensor_.reset();
    decided_ = true;
  }
  recorder_->finished(origin_.ticket, false);
  changed_.notify_all();
}

// The link decides before its deadline.
void Message::await_launch() {
  std::unique_lock lock(mutex_);
  if (!taken_ && !decided_) recorder_->started(origin_.ticket);
  changed_.wait(lock, [this] { return decided_; });
  if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void Message::wait() {
  await_launch();
  work_.wait();
}

void Message::synchronize() {
  await_launch();
  work_.synchronize();
}

bool Message::done() const {
  const std::lock_guard lock(mutex_);
  return decided_ && work_.done();
}

}  // namespace phalanx::nccl
