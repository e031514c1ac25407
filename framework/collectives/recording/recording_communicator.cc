// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/recording_communicator.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/collectives/recording/failure.h"
#include "framework/collectives/recording/input_digest.h"
#include "framework/collectives/recording/operation_memory.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/measured_inputs.h"

namespace phalanx::recording {
namespace {

constexpr std::array kWays{NativeWay::kDefault, NativeWay::kKernelCopy, NativeWay::kOneShot, NativeWay::kTwoShot};

void require_cpu(const Operation& operation) {
  for (const auto& tensor : {operation.output, operation.input}) {
    if (!tensor.defined() || tensor.is_cpu()) continue;
    throw ConfigError("framework.record: records operations on the CPU only, but the tensors of " +
                      describe(operation.call) + " are on " + tensor.device().str() +
                      "; use a communicator that stages them in host memory");
  }
}

std::string_view memory_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

GroupInfo info_of(const Communicator& group) {
  GroupInfo info{.name = group.name(), .rank = group.rank(), .size = group.size()};
  for (const auto way : kWays) info.ways |= group.offers(way) ? 1U << static_cast<unsigned>(way) : 0U;
  return info;
}

}  // namespace

/// An operation from its launch to the moment at which its result is recorded.
struct PendingRecord {
  std::shared_ptr<Recorder> recorder;
  Recorder::Place place;
  EntryHead head{};
  InputDigest digest{};

  PendingRecord(std::shared_ptr<Recorder> to, std::uint32_t group, const Call& call, bool measured)
      : recorder(std::move(to)), place(recorder->place()) {
    head.group = group;
    head.set_call(call);
    if (measured) head.flags |= kMeasured;
  }

  bool measured() const { return head.has(kMeasured); }

  void take_input(const at::Tensor& input) {
    if (measured()) return;
    digest = digest_of(input, pieces_of(input, recorder->memory()));
    head.input_sum = digest.sum;
    head.pieces = static_cast<std::uint32_t>(digest.pieces.size());
  }

  void write(std::string_view received) {
    const std::string_view sums(reinterpret_cast<const char*>(digest.pieces.data()),
                                digest.pieces.size() * sizeof(std::uint32_t));
    const std::array<std::string_view, 2> parts{sums, received};
    recorder->add(place, head, parts);
  }

  void write_result(const at::Tensor& result) {
    if (result.defined()) head.flags |= kReceived;
    write(memory_of(result));
  }

  void write_failure(const CommError& error) {
    head.flags |= kFailed;
    write(to_failure(error));
  }
};

/// The numbers of operations so far, by stream.
struct RecordingCommunicator::Counters {
  std::uint64_t next(const Stream& stream) {
    const std::lock_guard lock(mutex);
    return ++launched[stream];
  }

  std::mutex mutex;
  std::map<Stream, std::uint64_t> launched;
};

/// A receive that is recorded when the message is there, or when its error is thrown. One that is abandoned is not.
class RecordingCommunicator::ReceivedMessage final : public Work::State, public Abandonable {
 public:
  ReceivedMessage(Work work, at::Tensor message, PendingRecord pending)
      : work_(std::move(work)), message_(std::move(message)), pending_(std::move(pending)) {}

  void wait() override {
    if (recorded_) return;
    recorded_ = true;
    try {
      work_.wait();
    } catch (const CommError& error) {
      pending_.write_failure(error);
      throw;
    }
    pending_.write_result(message_);
    message_.reset();
  }
  bool done() const override { return recorded_; }
  void abandon() override {}  // destroying the message abandons it

 private:
  Work work_;
  at::Tensor message_;
  PendingRecord pending_;
  bool recorded_ = false;
};

RecordingCommunicator::RecordingCommunicator(CommunicatorPtr inner, std::shared_ptr<Recorder> recorder,
                                             std::uint32_t group)
    : Decorator(std::move(inner)),
      recorder_(std::move(recorder)),
      group_(group),
      counters_(std::make_shared<Counters>()) {}

Work RecordingCommunicator::launch(Operation operation) {
  require_cpu(operation);
  const Call call = operation.call;
  if (call.op == Op::kSend || call.op == Op::kRecv) return launch_message(std::move(operation));
  PendingRecord launched(recorder_, group_, call, MeasuredInputs::marked());
  return inner()->run(call, [inner = inner(), counters = counters_, pending = std::move(launched),
                             operation = std::move(operation)]() mutable {
    const int rank = inner->rank();
    pending.head.sequence = counters->next({.group = pending.head.group});
    pending.take_input(input_of(operation, rank));
    const at::Tensor result = result_of(operation, rank, pending.measured());
    try {
      inner->launch(std::move(operation)).wait();
    } catch (const CommError& error) {
      pending.write_failure(error);
      throw;
    }
    pending.write_result(result);
  });
}

Work RecordingCommunicator::run(const Call& call, std::function<void()> body) {
  return inner()->run(call, [body = std::move(body), marked = MeasuredInputs::marked()] {
    const MeasuredInputs::Restored mark(marked);
    body();
  });
}

Work RecordingCommunicator::launch_message(Operation operation) {
  PendingRecord pending(recorder_, group_, operation.call, MeasuredInputs::marked());
  pending.head.sequence = counters_->next(Stream::of(group_, operation.call));
  if (operation.call.op == Op::kRecv) {
    at::Tensor message = operation.output;
    Work work = inner()->launch(std::move(operation));
    return Work(std::make_shared<ReceivedMessage>(std::move(work), std::move(message), std::move(pending)));
  }
  pending.take_input(operation.output);
  pending.write({});
  return inner()->launch(std::move(operation));
}

CommunicatorPtr RecordingCommunicator::split(int color, int key) {
  PendingRecord pending(recorder_, group_, {.op = Op::kSplit}, false);
  auto child = inner()->split(color, key);
  pending.head.sequence = counters_->next({.group = group_});
  if (!child) {
    pending.write({});
    return nullptr;
  }
  const std::uint32_t number = recorder_->add_group(info_of(*child));
  pending.head.flags |= kReceived;
  pending.write({reinterpret_cast<const char*>(&number), sizeof(number)});
  return std::make_shared<RecordingCommunicator>(std::move(child), recorder_, number);
}

std::string RecordingCommunicator::why_no_shrink() const {
  return "framework.record: a recorded group cannot shrink; remove framework.record";
}

at::Tensor RecordingCommunicator::do_allocate(const Allocation& allocation) {
  refuse_shared(allocation, *this);
  return Decorator::do_allocate(allocation);
}

CommunicatorPtr RecordingCommunicator::wrap(CommunicatorPtr child) {
  const std::uint32_t number = recorder_->add_group(info_of(*child));
  return std::make_shared<RecordingCommunicator>(std::move(child), recorder_, number);
}

CommunicatorPtr record(CommunicatorPtr world, const std::shared_ptr<Recorder>& recorder) {
  const std::uint32_t number = recorder->add_group(info_of(*world));
  return std::make_shared<RecordingCommunicator>(std::move(world), recorder, number);
}

}  // namespace phalanx::recording
