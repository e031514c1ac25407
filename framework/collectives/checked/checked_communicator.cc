#include "framework/collectives/checked/checked_communicator.h"

#include <utility>

#include "framework/base/random.h"
#include "framework/base/text.h"
#include "framework/collectives/checked/comparison.h"
#include "framework/comm/arguments.h"

namespace phalanx {
namespace {

// What calls that differ by their `detail` alone have to say.
std::string note_of(const Reduction& op) { return op.kind() == Reduction::Kind::kCustom ? op.name() : ""; }

std::string note_of(Counts counts) {
  std::vector<std::string> texts;
  for (const auto count : counts) texts.push_back(std::to_string(count));
  return texts.empty() ? "" : "counts " + join(texts, ", ");
}

std::string note_of(const Reduction& op, Counts counts) {
  const auto first = note_of(op), second = note_of(counts);
  return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

bool takes_all_ranks(Op op) { return op != Op::kSend && op != Op::kRecv && op != Op::kNone; }

}  // namespace

CheckedCommunicator::CheckedCommunicator(CommunicatorPtr inner) : Decorator(std::move(inner)) {}

template <class Launch>
Work CheckedCommunicator::check_first(const Call& call, const std::string& note, Launch launch) {
  return inner()->run(call, [inner = inner(), compared = compared_, call, note, launch = std::move(launch)] {
    const auto number = ++*compared;
    compare_calls(*inner, call, number, note);
    launch(*inner, number).wait();
  });
}

Work CheckedCommunicator::broadcast(at::Tensor tensor, int root) {
  const Call call = check_broadcast(*this, tensor, root);
  return check_first(call, "", [=](Communicator& group, auto) { return group.broadcast(tensor, root); });
}

Work CheckedCommunicator::reduce(at::Tensor tensor, Reduction op, int root) {
  const Call call = check_reduce(*this, tensor, op, root);
  return check_first(call, note_of(op), [=](Communicator& group, auto) { return group.reduce(tensor, op, root); });
}

Work CheckedCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const Call call = check_all_reduce(tensor, op);
  return check_first(call, note_of(op), [=](Communicator& group, auto) { return group.all_reduce(tensor, op); });
}

Work CheckedCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const Call call = check_reduce_scatter(*this, output, input, op, counts);
  return check_first(call, note_of(op, counts), [=, kept = counts.vec()](Communicator& group, auto) {
    return group.reduce_scatter(output, input, op, kept);
  });
}

Work CheckedCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const Call call = check_all_gather(*this, output, input, counts);
  return check_first(call, note_of(counts), [=, kept = counts.vec()](Communicator& group, auto) {
    return group.all_gather(output, input, kept);
  });
}

Work CheckedCommunicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_gather(*this, output, input, root, counts);
  return check_first(call, note_of(counts), [=, kept = counts.vec()](Communicator& group, auto) {
    return group.gather(output, input, root, kept);
  });
}

Work CheckedCommunicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_scatter(*this, output, input, root, counts);
  return check_first(call, note_of(counts), [=, kept = counts.vec()](Communicator& group, auto) {
    return group.scatter(output, input, root, kept);
  });
}

Work CheckedCommunicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  const Call call = check_all_to_all(*this, output, input, output_counts, input_counts);
  const std::string note = input_counts.empty() ? "" : "with counts";
  return check_first(call, note,
                     [=, received = output_counts.vec(), sent = input_counts.vec()](Communicator& group, auto number) {
                       if (!sent.empty()) compare_counts(group, received, sent, number);
                       return group.all_to_all(output, input, received, sent);
                     });
}

Work CheckedCommunicator::barrier(std::optional<Seconds> timeout) {
  if (timeout) return inner()->barrier(timeout);
  return check_first({.op = Op::kBarrier}, "", [](Communicator& group, auto) { return group.barrier(); });
}

Work CheckedCommunicator::run(const Call& call, std::function<void()> body) {
  if (!takes_all_ranks(call.op)) return inner()->run(call, std::move(body));
  return check_first(call, "", [body = std::move(body)](Communicator&, auto) {
    body();
    return Work();
  });
}

CommunicatorPtr CheckedCommunicator::split(int color, int key) {
  check_first({.op = Op::kSplit}, "", [](Communicator&, auto) { return Work(); }).wait();
  return Decorator::split(color, key);
}

at::Tensor CheckedCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  Call call{.elements = static_cast<std::int64_t>(c10::elementSize(dtype)), .op = Op::kAllocate};
  call.detail = static_cast<std::uint64_t>(dtype);
  for (const auto size : sizes) {
    call.elements *= size;
    call.detail = mix(call.detail, static_cast<std::uint64_t>(size));
  }
  check_first(call, c10::toString(dtype), [](Communicator&, auto) { return Work(); }).wait();
  return Decorator::allocate(sizes, options);
}

CommunicatorPtr CheckedCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<CheckedCommunicator>(std::move(child));
}

}  // namespace phalanx
