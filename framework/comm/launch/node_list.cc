// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/node_list.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kMostNodes = 65'536;

[[noreturn]] void refuse_list(const std::string& list, const std::string& why) {
  throw ConfigError("node list \"" + list + "\": " + why);
}

// Splits at commas that are not within brackets.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : list) {
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) refuse_list(list, "its brackets do not match");
      inside = c == '[';
    }
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (inside) refuse_list(list, "its brackets do not match");
  return parts;
}

std::uint64_t number_in(const std::string& list, const std::string& text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) refuse_list(list, "\"" + text + "\" is not a number");
  return number;
}

// Returns the numbers of a range such as "01-03", with as many digits as its beginning has.
std::vector<std::string> numbers_of(const std::string& list, const std::string& range) {
  const auto dash = std::min(range.find('-'), range.size());
  const std::string begin = range.substr(0, dash), end = dash == range.size() ? begin : range.substr(dash + 1);
  const std::uint64_t first = number_in(list, begin), last = number_in(list, end);
  if (last < first || last - first >= kMostNodes) refuse_list(list, "\"" + range + "\" is not a range");
  std::vector<std::string> numbers;
  for (auto number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < begin.size()) digits.insert(0, begin.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return numbers;
}

// Appends to `names` the names of one part of the list, of which `before` is already expanded.
void expand(const std::string& list, const std::string& before, const std::string& rest,
            std::vector<std::string>& names) {
  const auto open = rest.find('[');
  if (open == std::string::npos) {
    if ((before + rest).empty()) refuse_list(list, "a name is empty");
    if (names.size() == kMostNodes) refuse_list(list, "it has more than " + std::to_string(kMostNodes) + " names");
    names.push_back(before + rest);
    return;
  }
  const auto close = rest.find(']', open);
  for (const auto& range : split(rest.substr(open + 1, close - open - 1))) {
    for (const auto& number : numbers_of(list, range)) {
      expand(list, before + rest.substr(0, open) + number, rest.substr(close + 1), names);
    }
  }
}

}  // namespace

std::vector<std::string> expand_node_list(const std::string& list) {
  std::vector<std::string> names;
  for (const auto& part : split(list)) expand(list, "", part, names);
  return names;
}

std::optional<std::vector<int>> parse_task_counts(const std::string& list) {
  std::vector<int> counts;
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto number = [&at, end] {
    int value = 0;
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc() && value > 0 ? value : 0;
  };
  while (true) {
    const int tasks = number();
    int nodes = 1;
    if (std::string_view(at, end).starts_with("(x")) {
      at += 2;
      nodes = number();
      if (at == end || *at++ != ')') return std::nullopt;
    }
    if (tasks == 0 || nodes == 0 || static_cast<std::size_t>(nodes) > kMostNodes - counts.size()) return std::nullopt;
    counts.insert(counts.end(), static_cast<std::size_t>(nodes), tasks);
    if (at == end) return counts;
    if (*at++ != ',') return std::nullopt;
  }
}

}  // namespace phalanx
