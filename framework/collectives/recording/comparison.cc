// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/comparison.h"

#include <cstddef>
#include <deque>
#include <utility>

namespace phalanx::recording {

using Kind = OperationDifference::Kind;

namespace {

// The entry of an answer also has numbers that depend on the time at which the server got the request.
std::optional<Kind> difference_of_answers(const EntryHead& first, const EntryHead& second) {
  Call call = first.call(), other = second.call();
  const bool same_answer = std::exchange(call.detail, 0) == std::exchange(other.detail, 0);
  if (call != other || first.kind != second.kind) return Kind::kCall;
  if (first.has(kMeasured) && second.has(kMeasured)) return std::nullopt;
  if (first.input_sum != second.input_sum) return Kind::kInput;
  return same_answer && first.flags == second.flags ? std::nullopt : std::optional(Kind::kResult);
}

}  // namespace

std::optional<Kind> difference(const EntryHead& first, const EntryHead& second) {
  if (first.kind == EntryKind::kAnswer) return difference_of_answers(first, second);
  Call call = first.call(), other = second.call();
  const bool measured = first.has(kMeasured) && second.has(kMeasured);
  if (measured) {  // a text with a process id may have another length
    call.detail = other.detail;
    call.elements = other.elements;
  }
  if (call != other) return Kind::kCall;
  if (measured) return std::nullopt;
  if (first.input_sum != second.input_sum) return Kind::kInput;
  const bool same =
      first.payload == second.payload && first.payload_sum == second.payload_sum && first.flags == second.flags;
  return same ? std::nullopt : std::optional(Kind::kResult);
}

std::string explain(Kind kind, const Recording& first, const EntryHead& in_first, const Recording& second,
                    const EntryHead& in_second, const std::string& where) {
  const std::string operation = describe(in_first, first) + (where.empty() ? "" : ", other bits" + where);
  switch (kind) {
    case Kind::kCall:
      if (in_first.kind == EntryKind::kAnswer) return operation + ", asks for something else in the other run";
      return operation + ", is " + describe(in_second, second) + " in the other run";
    case Kind::kInput:
      return "the input of " + operation + ": the rank itself computed something else before it";
    case Kind::kResult:
      break;
  }
  return "the result of " + operation + ": the rank's own input is the same, so another rank or the connection differs";
}

std::optional<OperationDifference> compare(const Recording& first, const Recording& second) {
  std::optional<OperationDifference> found;
  std::uint64_t order = 0;  // of the difference in the first recording
  for (const auto& [stream, entries] : first.left()) {
    const auto others = second.left().find(stream);
    if (others == second.left().end()) continue;
    auto other = others->second.begin();
    for (const auto& entry : entries) {
      if (found && entry.order > order) break;
      while (other != others->second.end() && other->head.sequence < entry.head.sequence) ++other;
      if (other == others->second.end()) break;
      if (other->head.sequence != entry.head.sequence) continue;
      const auto kind = difference(entry.head, other->head);
      if (!kind) continue;
      found = {.kind = *kind, .first = entry.head, .text = explain(*kind, first, entry.head, second, other->head)};
      order = entry.order;
      break;
    }
  }
  return found;
}

}  // namespace phalanx::recording
