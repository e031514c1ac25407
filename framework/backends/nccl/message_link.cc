// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/message_link.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "framework/backends/nccl/connect.h"
#include "framework/base/error.h"
#include "framework/base/reason.h"

namespace phalanx::nccl {
namespace {

Member member_of(const MessageLink::Setup& setup, bool sends) {
  const int own = setup.host->rank();
  const int from = sends ? own : setup.peer, to = sends ? setup.peer : own;
  return {
      .group = "messages from rank " + std::to_string(from) + " to " + std::to_string(to) + " of " + setup.host->name(),
      .rank = sends ? 0 : 1,
      .size = 2,
      .device = setup.device,
      .timeout = setup.timeout};
}

// Returns the error of one message of a link that is broken.
std::exception_ptr error_of(const Message& message, const std::exception_ptr& cause, const std::string& hint) {
  try {
    std::rethrow_exception(cause);
  } catch (const CommError& error) {
    return std::make_exception_ptr(CommError(error.kind(), message.describe() + ": " + error.what() + hint));
  } catch (const std::exception& error) {
    return std::make_exception_ptr(
        CommError(CommError::Kind::kSystem, message.describe() + ": " + reason(error) + hint));
  }
}

}  // namespace

MessageLink::MessageLink(Setup setup, bool sends)
    : setup_(std::move(setup)),
      member_(member_of(setup_, sends)),
      stream_(static_cast<c10::DeviceIndex>(setup_.device)) {}

void MessageLink::start() {
  thread_ = std::thread([this] { work(); });
}

void MessageLink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MessageLink::connect(const ncclUniqueId& id) {
  ncclComm_t const comm = open_communicator(id, member_);
  group_ = std::make_unique<Group>(
      member_, comm, std::shared_ptr<FlightRecorder>(setup_.host, &setup_.host->recorder()), stream_.get());
}

void MessageLink::post(const MessagePtr& message) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return message->fail(error_of(*message, failure_, hint()));
    if (take_at_once(message)) return;
    posted_.push_back(message);
  }
  changed_.notify_all();
}

// A broken link has no messages any more, so its thread waits for the end.
void MessageLink::work() {
  (void)cudaSetDevice(setup_.device);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !posted_.empty(); });
      if (posted_.empty()) return;
    }
    try {
      serve();
    } catch (...) {
      break_off(std::current_exception());
    }
  }
}

void MessageLink::break_off(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  failure_ = error;
  for (const auto& message : std::exchange(posted_, {})) message->fail(error_of(*message, error, hint()));
}

}  // namespace phalanx::nccl
