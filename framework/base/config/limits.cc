// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/limits.h"

#include <algorithm>
#include <cmath>

#include "framework/base/config/suggest.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

std::string alternatives(const std::vector<std::string>& words) {
  if (words.size() < 2) return join(words, "");
  const std::vector<std::string> front(words.begin(), words.end() - 1);
  return join(front, ", ") + " or " + words.back();
}

std::optional<ValueProblem> check_number(const Limits& limits, double value, const std::string& text) {
  const bool inside =
      limits.exclusive ? value > limits.min && value < limits.max : value >= limits.min && value <= limits.max;
  if (inside) return {};
  return ValueProblem{"must be " + describe(limits) + ", got " + text};
}

}  // namespace

std::optional<ValueProblem> check(const Limits&, bool) { return {}; }

std::optional<ValueProblem> check(const Limits& limits, std::int64_t value) {
  return check_number(limits, static_cast<double>(value), std::to_string(value));
}

std::optional<ValueProblem> check(const Limits& limits, double value) {
  return check_number(limits, value, shortest(value));
}

std::optional<ValueProblem> check(const Limits& limits, const std::string& value) {
  if (limits.choices.empty() || std::ranges::count(limits.choices, value) > 0) return {};
  const Node written{.kind = Node::Kind::kScalar, .text = value};
  return ValueProblem{"must be " + describe(limits) + ", got " + what_is(written), suggest(value, limits.choices)};
}

std::string describe(const Limits& limits) {
  if (!limits.choices.empty()) return alternatives(limits.choices);
  const bool from = std::isfinite(limits.min), to = std::isfinite(limits.max);
  const std::string min = shortest(limits.min), max = shortest(limits.max);
  if (from && to) return limits.exclusive ? "above " + min + " and below " + max : "between " + min + " and " + max;
  if (from) return (limits.exclusive ? "above " : "at least ") + min;
  if (to) return (limits.exclusive ? "below " : "at most ") + max;
  return "";
}

}  // namespace phalanx::config
