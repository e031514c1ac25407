// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "framework/backends/nccl/inbox.h"
#include "framework/backends/nccl/outbox.h"
#include "framework/backends/nccl/plugin.h"

namespace phalanx::nccl {

/// Messages by ncclSend and ncclRecv, from device memory to device memory.
///
/// Each direction between two ranks has a link, which connects with its first message (message_link.h). Order: a link's
/// bytes move in the order of the sends. The host's group carries a header of 16 bytes before each message, with which
/// the receiver matches tags and detects wrong sizes (inbox.h). So the order of receives need not be that of the sends,
/// but each message that is received out of order is copied once more.
///
/// Waiting: `Work::wait()` of a send blocks the host until NCCL has taken it, which for the first message of a link
/// takes until the receiver has posted a receive. That of a receive blocks the host until the sender has launched the
/// send; it does not wait for the sender's device. After that, both order the current stream only.
///
/// Errors: a receive fails with kTimeout if no message with its tag is announced within the timeout after its launch,
/// or after the message before it. It names the tags that came instead. An error of NCCL, or a device that does not
/// finish a message within the timeout, breaks the link: its other messages fail too.
///
/// Messages cannot be recorded in a graph: launching one throws std::invalid_argument.
class Messages final : public DeviceMessages {
 public:
  explicit Messages(const MessagesRequest& request);
  Work launch(Operation operation) override;

 private:
  MessageLink& link(int peer, bool sends);

  MessagesRequest request_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::shared_ptr<FlightRecorder::Group> record_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Outbox>> to_;  // by peer; null: no message yet
  std::vector<std::unique_ptr<Inbox>> from_;
};

}  // namespace phalanx::nccl
