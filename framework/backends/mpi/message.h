// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/group.h"
#include "framework/backends/mpi/inbox.h"
#include "framework/base/error.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/call.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/operation_queue.h"
#include "framework/comm/operations/work.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// The objects of a communicator that every message needs.
struct MessageContext {
  std::shared_ptr<Group> group;
  std::shared_ptr<OperationQueue> queue;  // has the flight recorder
  std::shared_ptr<FlightRecorder::Group> record;
};

/// One message that is sent or received, as raw bytes. It is on its way when send() or receive() returns; exactly one
/// of them is called, once. If its length differs from the receiver's tensor, the receiver gets kMismatch and the
/// message is lost, but the group goes on. Any other error breaks the group. Thread-safe.
class Message final : public Work::State, public Abandonable, private Inbox::Receiver {
 public:
  /// `call` has been checked; it gives the peer and the tag.
  Message(const MessageContext& context, at::Tensor tensor, const Call& call);

  void send();
  void receive();

  void wait() override;
  bool done() const override;  // makes progress, too
  void abandon() override;

 private:
  bool take() noexcept override;
  void take_if_there();
  void post_receive(MPI_Message message, const MPI_Status& status);

  Group& group() const { return *context_.group; }
  FlightRecorder& recorder() const { return context_.queue->recorder(); }
  std::string where() const { return group().where(call_.op, sequence_); }
  std::string awaited() const;
  void expect_success(int code) const;

  bool test();
  void finish(std::optional<CommError> error = std::nullopt);
  std::optional<CommError> mismatch() const;
  void give_up(const CommError& error);

  const MessageContext context_;
  const Call call_;
  const std::uint64_t sequence_;
  const FlightRecorder::Ticket ticket_;

  std::mutex mutex_;  // guards the rest
  at::Tensor tensor_;
  std::int64_t expected_bytes_;
  std::int64_t actual_bytes_;
  std::vector<std::byte> unexpected_;  // receives a message of an unexpected length
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool in_mpi_ = false;
  std::optional<CommError> error_;
  std::atomic<bool> done_{false};
};

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
