// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/checked/checked_communicator.h"

#include <utility>
#include <vector>

#include "framework/base/text.h"
#include "framework/collectives/checked/comparison.h"

namespace phalanx {
namespace {

bool takes_all_ranks(Op op) { return op != Op::kSend && op != Op::kRecv && op != Op::kNone; }

bool is_uneven_exchange(const Operation& operation) {
  return operation.call.op == Op::kAllToAll && !operation.input_counts.empty();
}

std::string list(const char* what, at::IntArrayRef numbers) {
  std::vector<std::string> texts;
  for (const auto number : numbers) texts.push_back(std::to_string(number));
  return std::string(what) + ' ' + join(texts, ", ");
}

// Returns the details behind the hash `detail`, for calls that may differ only there.
std::string note_of(const Operation& operation) {
  if (is_uneven_exchange(operation)) return "with counts";  // the counts themselves differ between ranks
  std::vector<std::string> notes;
  if (operation.reduction.kind() == Reduction::Kind::kCustom) notes.push_back(operation.reduction.name());
  if (!operation.input_counts.empty()) notes.push_back(list("counts", operation.input_counts));
  return join(notes, ", ");
}

}  // namespace

CheckedCommunicator::CheckedCommunicator(CommunicatorPtr inner) : Decorator(std::move(inner)) {}

template <class Start>
Work CheckedCommunicator::check_first(const Call& call, const std::string& note, Start start) {
  return inner()->run(call, [inner = inner(), compared = compared_, call, note, start = std::move(start)]() mutable {
    const auto number = ++*compared;
    compare_calls(*inner, call, number, note);
    start(*inner, number).wait();
  });
}

Work CheckedCommunicator::launch(Operation operation) {
  if (!takes_all_ranks(operation.call.op) || operation.timeout) return Decorator::launch(std::move(operation));
  const Call call = operation.call;
  const std::string note = note_of(operation);
  return check_first(call, note, [operation = std::move(operation)](Communicator& group, auto number) mutable {
    if (is_uneven_exchange(operation)) {
      compare_counts(group, operation.output_counts, operation.input_counts, number);
    }
    return group.launch(std::move(operation));
  });
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

at::Tensor CheckedCommunicator::do_allocate(const Allocation& allocation) {
  check_first(allocation.call, list("sizes", allocation.sizes), [](Communicator&, auto) { return Work(); }).wait();
  return Decorator::do_allocate(allocation);
}

CommunicatorPtr CheckedCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<CheckedCommunicator>(std::move(child));
}

}  // namespace phalanx
