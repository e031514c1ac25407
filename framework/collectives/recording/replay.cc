// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/replay.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"
#include "framework/collectives/recording/comparison.h"
#include "framework/collectives/recording/failure.h"
#include "framework/collectives/recording/input_digest.h"
#include "framework/collectives/recording/operation_memory.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::recording {
namespace {

// Returns the call of an operation without what may differ in a measurement.
Call comparable(Call call, bool measured) {
  if (measured) call.detail = 0;
  return call;
}

std::string in_step(std::int64_t step) {
  return step > 0 ? "in step " + std::to_string(step) : std::string("before the first step");
}

// Copies as many elements as fit.
void copy_elements(const at::Tensor& to, const at::Tensor& from) {
  const auto bytes = std::min(to.nbytes(), from.nbytes());
  if (bytes > 0) std::memmove(to.mutable_data_ptr(), from.const_data_ptr(), bytes);
}

// Gives a rank the data that it would receive if all ranks had its tensors.
void answer_alone(const Operation& operation, int rank, int size) {
  const auto& counts = operation.input_counts;
  const bool root = operation.root() == rank;
  switch (operation.call.op) {
    case Op::kReduceScatter:
      return copy_elements(operation.output,
                           PartLayout(counts, size, operation.input.numel()).of(operation.input, rank));
    case Op::kScatter:
      if (root) {
        copy_elements(operation.output, PartLayout(counts, size, operation.input.numel()).of(operation.input, rank));
      }
      return;
    case Op::kAllGather:
    case Op::kGather: {
      if (operation.call.op == Op::kGather && !root) return;
      const at::Tensor own = operation.input.clone();  // it may be a part of the output
      const PartLayout parts(counts, size, operation.output.numel());
      for (int each = 0; each < size; ++each) copy_elements(parts.of(operation.output, each), own);
      return;
    }
    case Op::kAllToAll:
      return copy_elements(operation.output, operation.input);
    default:
      return;
  }
}

// Describes a bucket by its first and its last parameter.
std::string bucket_of(const std::string& first, const std::string& last) {
  constexpr std::string_view kGradient = "the gradient of ";
  const auto parameter = [&](const std::string& name) {
    return name.starts_with(kGradient) ? name.substr(kGradient.size()) : name;
  };
  return parameter(first) + " to " + parameter(last);
}

// Returns the names of the pieces whose checksums differ, and the bucket, if it has more than them: " in the gradient
// of fc1.weight, of the bucket fc3.bias to fc1.weight". Empty if there are no names.
std::string different_pieces(const std::vector<NamedMemory::Piece>& pieces, const std::vector<std::uint32_t>& sums,
                             const std::vector<std::uint32_t>& others) {
  std::vector<std::string> all, different;
  const bool comparable = sums.size() == pieces.size() && others.size() == pieces.size();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].name.empty()) continue;
    all.push_back(pieces[i].name);
    if (comparable && sums[i] != others[i]) different.push_back(pieces[i].name);
  }
  const auto& names = different.empty() ? all : different;
  if (names.empty()) return "";
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  const std::string more = names.size() > kShown ? " and " + std::to_string(names.size() - kShown) + " more" : "";
  const bool whole = names.size() == all.size() && more.empty();
  return " in " + join(shown, ", ") + more + (whole ? "" : ", of the bucket " + bucket_of(all.front(), all.back()));
}

// Returns the checksums of the parts of an operation's result that have names.
std::vector<std::uint32_t> sums_of(const std::vector<NamedMemory::Piece>& pieces, const std::string& received) {
  std::vector<std::uint32_t> sums;
  std::size_t at = 0;
  for (const auto& piece : pieces) {
    if (at + piece.bytes > received.size()) return {};
    sums.push_back(crc32c(received.data() + at, piece.bytes));
    at += piece.bytes;
  }
  return sums;
}

// A receive of which waiting ends with an error, as in the recorded run. One that is abandoned has none.
class FailingReceive final : public Work::State, public Abandonable {
 public:
  explicit FailingReceive(std::function<void()> fail) : fail_(std::move(fail)) {}
  void wait() override {
    if (const auto fail = std::exchange(fail_, nullptr)) fail();
  }
  bool done() const override { return !fail_; }
  void abandon() override { fail_ = nullptr; }

 private:
  std::function<void()> fail_;
};

class ReplayedGroup final : public Communicator {
 public:
  ReplayedGroup(std::shared_ptr<Replay> replay, std::uint32_t number)
      : replay_(std::move(replay)),
        number_(number),
        info_(replay_->recording().group(number)),
        recorded_(replay_->queue().recorder().add_group(info_.name)) {}

  int rank() const override { return info_.rank; }
  int size() const override { return info_.size; }
  const std::string& name() const override { return info_.name; }
  bool takes(c10::DeviceType device) const override { return device == c10::DeviceType::CPU; }
  bool offers(NativeWay way) const override { return (info_.ways >> static_cast<unsigned>(way) & 1U) != 0; }
  bool shares_memory() const override { return size() == 1; }
  FlightRecorder& recorder() const override { return replay_->queue().recorder(); }

  Work launch(Operation operation) override {
    const bool measured = MeasuredInputs::marked();
    const Call call = operation.call;
    if (call.op == Op::kRecv) return receive(std::move(operation), measured);
    if (call.op == Op::kSend) {  // not ordered with other operations, and has no result
      (void)answer(operation, measured);
      return {};
    }
    return replay_->queue().launch(*recorded_, call,
                                   [this, keep = replay_, operation = std::move(operation), measured]() mutable {
                                     (void)answer(operation, measured);
                                   });
  }
  Work run(const Call& call, std::function<void()> body) override {
    return replay_->queue().launch(*recorded_, call, [body = std::move(body), marked = MeasuredInputs::marked()] {
      const MeasuredInputs::Restored mark(marked);
      body();
    });
  }

  CommunicatorPtr split(int color, int key) override;
  std::string why_no_shrink() const override { return cannot_shrink("of a replay"); }
  at::Tensor do_allocate(const Allocation& allocation) override {
    refuse_shared(allocation, *this);
    return at::zeros(allocation.sizes, allocation.options);
  }

 private:
  // Returns false for a receive without a recorded result.
  bool answer(Operation& operation, bool measured) {
    if (!replay_->detached()) return replay_->follow(number_, operation, measured);
    answer_alone(operation, info_.rank, info_.size);
    return true;
  }

  // The message is there at once, but an error waits until the rank does, as in the recorded run.
  Work receive(Operation operation, bool measured) {
    try {
      if (answer(operation, measured)) return {};
    } catch (...) {
      return failing([error = std::current_exception()] { std::rethrow_exception(error); });
    }
    return failing([replay = replay_, what = describe(operation.call) + " of group " + info_.name] {
      replay->throw_unanswered(what);
    });
  }

  static Work failing(std::function<void()> fail) { return Work(std::make_shared<FailingReceive>(std::move(fail))); }

  std::shared_ptr<Replay> replay_;
  std::uint32_t number_;
  GroupInfo info_;
  std::shared_ptr<FlightRecorder::Group> recorded_;
};

CommunicatorPtr ReplayedGroup::split(int color, int) {
  replay_->queue().drain();
  if (replay_->detached()) throw ConfigError("a replay cannot make groups while it restores a checkpoint");
  const auto child = replay_->follow_split(number_);
  if (!child || color < 0) return nullptr;
  return std::make_shared<ReplayedGroup>(replay_, *child);
}

}  // namespace

CommunicatorPtr Replay::world() { return std::make_shared<ReplayedGroup>(shared_from_this(), 0); }

void Replay::attach() {
  recording_->skip_to_segment();
  {
    const std::lock_guard lock(mutex_);
    begins_later_ = true;
    last_.clear();
  }
  detached_ = false;
}

void Replay::begin_step(std::int64_t step) {
  if (other_ && other_->begins_at() > 0 && step_ <= other_->begins_at() && step > other_->begins_at()) {
    other_->skip_to_segment();
  }
  step_ = step;
}

std::string Replay::difference_from_other() const {
  const std::lock_guard lock(mutex_);
  return difference_from_other_;
}

void Replay::differ(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (difference_.empty()) difference_ = what;
  throw ReplayDifference(what);
}

std::string Replay::difference() const {
  const std::lock_guard lock(mutex_);
  return difference_;
}

// Receives are found by their numbers, since the recording lacks those that were abandoned.
std::optional<RecordedOperation> Replay::find(std::uint32_t group, const Call& call) {
  const Stream stream = Stream::of(group, call);
  auto recorded = call.op == Op::kRecv ? recording_->find(stream, next_in(stream)) : recording_->next(stream);
  if (!recorded) return std::nullopt;
  ++operations_;
  require_same_call(*recorded, call);
  return recorded;
}

RecordedOperation Replay::expect(std::uint32_t group, const Call& call) {
  if (auto recorded = find(group, call)) return *std::move(recorded);
  const std::string what = describe(call) + " of group " + recording_->group(group).name;
  if (recording_->parameters_at_end()) {
    differ("the replay differs " + in_step(step_) + ": it asks for " + what +
           ", but the recorded rank made no more calls there");
  }
  throw_unanswered(what);
}

void Replay::require_same_call(const RecordedOperation& recorded, const Call& call) {
  const bool measured = recorded.head.has(kMeasured);
  if (comparable(recorded.head.call(), measured) == comparable(call, measured)) return;
  differ("the replay differs " + in_step(step_) + ": it asks for " + describe(call) + ", but the recording has " +
         describe(recorded.head, *recording_));
}

void Replay::compare_inputs(const RecordedOperation& recorded, const at::Tensor& input) {
  if (recorded.head.has(kMeasured)) return;
  const auto pieces = pieces_of(input, memory_);
  const InputDigest digest = digest_of(input, pieces);
  if (digest.sum == recorded.head.input_sum) return;
  differ("the replay differs " + in_step(step_) + ": its input of " + describe(recorded.head, *recording_) +
         " has other bits" + different_pieces(pieces, digest.pieces, recorded.piece_sums));
}

void Replay::compare_runs(const RecordedOperation& recorded, const at::Tensor& input, const at::Tensor& result) {
  const auto& head = recorded.head;
  if (!other_ || !difference_from_other().empty()) return;
  const auto second = other_->find(Stream::of(head), head.sequence);
  const auto kind = second ? recording::difference(head, second->head) : std::nullopt;
  if (!kind) return;
  std::string where;
  if (*kind == OperationDifference::Kind::kInput) {
    where = different_pieces(pieces_of(input, memory_), recorded.piece_sums, second->piece_sums);
  } else if (*kind == OperationDifference::Kind::kResult) {
    const auto pieces = pieces_of(result, memory_);
    where = different_pieces(pieces, sums_of(pieces, recorded.received), sums_of(pieces, second->received));
  }
  const std::lock_guard lock(mutex_);
  if (difference_from_other_.empty()) {
    difference_from_other_ = explain(*kind, *recording_, head, *other_, second->head, where);
  }
}

bool Replay::follow(std::uint32_t group, Operation& operation, bool measured) {
  const auto found =
      operation.call.op == Op::kRecv ? find(group, operation.call) : std::optional(expect(group, operation.call));
  if (!found) return false;
  const RecordedOperation& recorded = *found;
  const int rank = recording_->group(group).rank;
  if (measured != recorded.head.has(kMeasured)) {
    differ("the replay differs " + in_step(step_) + ": " + describe(recorded.head, *recording_) + " is " +
           (measured ? "now " : "no longer ") + "a measurement");
  }
  const at::Tensor input = input_of(operation, rank), result = result_of(operation, rank, measured);
  compare_inputs(recorded, input);
  compare_runs(recorded, input, result);
  if (recorded.head.has(kFailed)) std::rethrow_exception(failure_in(recorded.received));
  const std::size_t bytes = result.defined() ? result.nbytes() : 0;
  if (bytes != recorded.received.size()) {
    differ("the replay differs " + in_step(step_) + ": it expects " + std::to_string(bytes) + " bytes of " +
           describe(recorded.head, *recording_) + ", but the recorded rank received " +
           std::to_string(recorded.received.size()));
  }
  if (bytes > 0) std::memcpy(result.mutable_data_ptr(), recorded.received.data(), bytes);
  return true;
}

std::optional<std::uint32_t> Replay::follow_split(std::uint32_t group) {
  const RecordedOperation recorded = expect(group, {.op = Op::kSplit});
  if (!recorded.head.has(kReceived)) return std::nullopt;
  std::uint32_t number = 0;
  std::memcpy(&number, recorded.received.data(), std::min(sizeof(number), recorded.received.size()));
  return number;
}

std::uint32_t Replay::follow_connection(const std::string& name) {
  const std::uint32_t number = servers_++;
  const auto recorded = recording_->server(number);
  if (!recorded) throw_unanswered("a connection to " + name);
  if (*recorded != name) {
    differ("the replay differs " + in_step(step_) + ": it connects to " + name + ", but the recorded rank to " +
           *recorded);
  }
  return number;
}

std::uint64_t Replay::next_in(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto [last, is_first] = last_.try_emplace(stream, 0);
  if (is_first && begins_later_) last->second = recording_->first_sequence(stream).value_or(1) - 1;
  return ++last->second;
}

std::optional<RecordedOperation> Replay::follow_request(EntryHead asked, const at::Tensor& sent,
                                                        const std::string& what) {
  const Stream server = Stream::of(asked);
  if (asked.sequence > 0) asked.sequence = next_in(server);
  auto recorded = recording_->find(server, asked.sequence);
  if (!recorded) return std::nullopt;
  ++operations_;
  Call call = asked.call(), other = recorded->head.call();
  call.detail = other.detail = 0;  // of the answer
  if (call != other) {
    differ("the replay differs " + in_step(step_) + ": it asks for " + what + ", but not as the recorded rank did in " +
           describe(recorded->head, *recording_));
  }
  compare_inputs(*recorded, sent);
  compare_runs(*recorded, sent, {});
  return recorded;
}

void Replay::throw_unanswered(const std::string& what) {
  if (recording_->parameters_at_end()) {
    differ("the replay differs " + in_step(step_) + ": it waits for " + what + ", but the recorded rank did not");
  }
  throw RecordingEnded("the recording ends " + in_step(step_) + ": the recorded rank was waiting for " + what +
                       " when it ended, or earlier");
}

void Replay::end_step(std::int64_t step, std::uint64_t checksum) {
  const auto recorded = recording_->parameters_after(step);
  if (!recorded || *recorded == checksum) return;
  differ("the replay differs in step " + std::to_string(step) +
         ": the parameters after it have other bits, though all operations had the same inputs and results");
}

void Replay::end_run(std::uint64_t checksum) {
  if (const auto left = recording_->first_left()) {
    differ("the replay differs at its end: the recording goes on with " + describe(*left, *recording_));
  }
  if (recording_->parameters_at_end() && *recording_->parameters_at_end() != checksum) {
    differ("the replay differs at its end: the parameters have other bits than those of the recorded rank");
  }
}

}  // namespace phalanx::recording
