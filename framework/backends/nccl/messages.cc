// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/messages.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "framework/backends/nccl/device_scope.h"

namespace phalanx::nccl {

Messages::Messages(const MessagesRequest& request)
    : request_(request),
      recorder_(request.host, &request.host->recorder()),
      record_(recorder_->add_group(request.host->name())),
      to_(static_cast<std::size_t>(request.host->size())),
      from_(to_.size()) {}

Work Messages::launch(Operation operation) {
  const Call& call = operation.call;
  const auto device = static_cast<c10::DeviceIndex>(request_.device);
  if (operation.output.device().index() != device) {
    throw std::invalid_argument(std::string(to_string(call.op)) + ": a tensor is on " +
                                operation.output.device().str() + ", but rank " +
                                std::to_string(request_.host->rank()) + " of " + request_.host->name() +
                                " computes on cuda:" + std::to_string(request_.device));
  }
  const DeviceScope scope(device);
  if (is_recording(c10::cuda::getCurrentCUDAStream(device))) {
    throw std::invalid_argument(describe(call) + ": messages between devices cannot be recorded in a graph");
  }
  auto message = std::make_shared<Message>(operation, request_.host->name(), request_.device, recorder_,
                                           recorder_->launched(*record_, call));
  link(call.peer, call.op == Op::kSend).post(message);
  return Work(std::move(message));
}

MessageLink& Messages::link(int peer, bool sends) {
  const MessageLink::Setup setup{
      .host = request_.host, .peer = peer, .device = request_.device, .timeout = request_.timeout};
  const auto i = static_cast<std::size_t>(peer);
  const std::lock_guard lock(mutex_);
  if (sends) {
    if (!to_[i]) to_[i] = std::make_unique<Outbox>(setup);
    return *to_[i];
  }
  if (!from_[i]) from_[i] = std::make_unique<Inbox>(setup);
  return *from_[i];
}

}  // namespace phalanx::nccl
