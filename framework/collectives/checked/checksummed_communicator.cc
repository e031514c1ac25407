// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/checked/checksummed_communicator.h"

#include <ATen/ops/empty.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/storage/crc32c.h"
#include "framework/collectives/direct.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/wait_both.h"

namespace phalanx {
namespace {

std::atomic<const FlightRecorder*> damaged_sender{nullptr};

std::int64_t checksum_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(crc32c(tensor.const_data_ptr(), tensor.nbytes()));
}

std::string hex(std::int64_t checksum) {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", static_cast<unsigned>(checksum));
  return text;
}

// Returns the operation that sends or receives the checksum of a message.
Operation checksum_operation(const Operation& message, const at::Tensor& checksum) {
  Operation operation;
  operation.call = message.call;
  operation.call.elements = 1;
  operation.call.dtype = at::kLong;
  operation.output = checksum;
  return operation;
}

/// A message with its checksum, in flight. Both are messages, so destroying them abandons them.
class CheckedMessage : public Work::State, public Abandonable {
 public:
  CheckedMessage(Work message, Work checksum, at::Tensor value)
      : message_(std::move(message)), checksum_(std::move(checksum)), value_(std::move(value)) {}

  // After a message of another size, the group goes on.
  void wait() override { wait_both(message_, checksum_); }
  bool done() const override { return message_.done() && checksum_.done(); }
  void abandon() override {}

 protected:
  std::int64_t value() const { return *value_.const_data_ptr<std::int64_t>(); }

 private:
  Work message_, checksum_;
  at::Tensor value_;
};

class ReceivedMessage final : public CheckedMessage {
 public:
  ReceivedMessage(Work message, Work checksum, at::Tensor value, at::Tensor tensor, std::string where, int sender)
      : CheckedMessage(std::move(message), std::move(checksum), std::move(value)),
        tensor_(std::move(tensor)),
        where_(std::move(where)),
        sender_(sender) {}

  void wait() override {
    CheckedMessage::wait();
    const auto arrived = checksum_of(tensor_);
    if (arrived == value()) return;
    const std::string sender = std::to_string(sender_);
    throw CommError(CommError::Kind::kSystem,
                    where_ + ": " + std::to_string(tensor_.nbytes()) + " bytes from rank " + sender +
                        " were damaged on the way: rank " + sender + " sent CRC-32C " + hex(value()) +
                        ", but what arrived has " + hex(arrived) +
                        "; the memory or the network interface of one of these two hosts, or the network between "
                        "them, does not work correctly");
  }

 private:
  at::Tensor tensor_;
  std::string where_;  // operation, sequence number, group and rank
  int sender_;
};

// Returns the tensor to send in place of `tensor`: a copy with another bit if that was asked for.
at::Tensor as_sent(const at::Tensor& tensor, const FlightRecorder& sender) {
  const FlightRecorder* expected = &sender;
  if (damaged_sender.load(std::memory_order_relaxed) != expected || tensor.nbytes() == 0) return tensor;
  if (!damaged_sender.compare_exchange_strong(expected, nullptr)) return tensor;
  const at::Tensor copy = tensor.clone();
  static_cast<unsigned char*>(copy.mutable_data_ptr())[copy.nbytes() / 2] ^= 4;
  return copy;
}

Work send_checked(Communicator& group, Operation operation) {
  const at::Tensor checksum = at::empty({1}, at::kLong).fill_(checksum_of(operation.output));
  const Operation second = checksum_operation(operation, checksum);
  operation.output = as_sent(operation.output, group.recorder());
  Work message = group.launch(std::move(operation));
  return Work(std::make_shared<CheckedMessage>(std::move(message), group.launch(second), checksum));
}

Work receive_checked(Communicator& group, Operation operation, const std::string& where) {
  const at::Tensor checksum = at::empty({1}, at::kLong), tensor = operation.output;
  const Operation second = checksum_operation(operation, checksum);
  const int sender = operation.call.peer;
  Work message = group.launch(std::move(operation));
  return Work(
      std::make_shared<ReceivedMessage>(std::move(message), group.launch(second), checksum, tensor, where, sender));
}

bool is_message(Op op) { return op == Op::kSend || op == Op::kRecv; }

std::string place_of(const std::string& operation, std::uint64_t number, const Communicator& group) {
  return operation + " #" + std::to_string(number) + " of " + group.name() + ", rank " + std::to_string(group.rank()) +
         " of " + std::to_string(group.size());
}

Work launch_message(Communicator& group, Operation operation, const std::string& where) {
  if (operation.call.op == Op::kSend) return send_checked(group, std::move(operation));
  return receive_checked(group, std::move(operation), where);
}

/// The group as an algorithm sees it that performs an operation: its messages are checked, and errors name the
/// operation.
class WithinOperation final : public Decorator {
 public:
  WithinOperation(CommunicatorPtr inner, std::string where) : Decorator(std::move(inner)), where_(std::move(where)) {}

  Work launch(Operation operation) override {
    if (!is_message(operation.call.op)) return Decorator::launch(std::move(operation));
    return launch_message(*inner(), std::move(operation), where_);
  }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override {
    return std::make_shared<WithinOperation>(std::move(child), where_);
  }

 private:
  std::string where_;
};

bool is_checked(const Operation& operation) {
  return operation.call.op != Op::kBarrier && device_of(operation) == c10::kCPU;
}

}  // namespace

ChecksummedCommunicator::ChecksummedCommunicator(CommunicatorPtr inner) : Decorator(std::move(inner)) {}

Work ChecksummedCommunicator::launch(Operation operation) {
  if (size() == 1 || !is_checked(operation)) return Decorator::launch(std::move(operation));
  const Call call = operation.call;
  const auto number = is_message(call.op) ? ++messages_ : ++collectives_;
  const std::string where = place_of(std::string(to_string(call.op)), number, *this);
  if (is_message(call.op)) return launch_message(*inner(), std::move(operation), where);
  return inner()->run(call, [inner = inner(), where, operation = std::move(operation)] {
    WithinOperation group(inner, where);
    run_directly(group, operation);
  });
}

Work ChecksummedCommunicator::run(const Call& call, std::function<void()> body) {
  if (!is_message(call.op) && call.op != Op::kNone) ++collectives_;
  return Decorator::run(call, std::move(body));
}

CommunicatorPtr ChecksummedCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<ChecksummedCommunicator>(std::move(child));
}

void damage_next_message(const FlightRecorder& sender) { damaged_sender = &sender; }

}  // namespace phalanx
