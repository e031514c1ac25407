// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "framework/backends/nccl/group.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/operation.h"
#include "framework/comm/operations/work.h"

namespace phalanx::nccl {

/// A message that its caller has launched. A MessageLink hands it to NCCL in its turn, or lets it fail. Waiting blocks
/// the host until then, and after that only the current stream.
class Message final : public Work::State {
 public:
  /// Notes the current stream of the device and the work on it. `group` names the caller's group, for messages.
  Message(const Operation& operation, std::string group, int device, std::shared_ptr<FlightRecorder> recorder,
          FlightRecorder::Ticket ticket);

  const at::Tensor& tensor() const { return tensor_; }
  std::size_t bytes() const { return bytes_; }
  const Call& call() const { return call_; }
  const Group::Origin& origin() const { return origin_; }
  std::string describe() const;  // "recv(from 1, tag 3) of 4 Float #7 of world"

  /// Says that the link now launches the message, after which its group records it. Followed by launched().
  void take();

  /// Exactly one of them is called, once.
  void launched(Work work);
  void fail(std::exception_ptr error);

  void wait() override;
  void synchronize() override;
  bool done() const override;

 private:
  void await_launch();

  const Call call_;
  const std::string group_;
  const std::size_t bytes_;
  at::Tensor tensor_;
  Group::Origin origin_;
  std::shared_ptr<FlightRecorder> recorder_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false, decided_ = false;
  Work work_;
  std::exception_ptr error_;
};

using MessagePtr = std::shared_ptr<Message>;

}  // namespace phalanx::nccl
