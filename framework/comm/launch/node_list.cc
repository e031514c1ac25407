// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/node_list.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kMostNodes = 65'536;

[[noreturn]] void refuse(const std::string& list, const std::string& why) {
  throw ConfigError("node list \"" + list + "\": " + why);
}

// Splits at commas that are not within brackets.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : list) {
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) refuse(list, "its brackets do not match");
      inside = c == '[';
    }
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (inside) refuse(list, "its brackets do not match");
  return parts;
}

std::uint64_t to_number(const std::string& list, const std::string& text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) refuse(list, "\"" + text + "\" is not a number");
  return number;
}

// Returns the numbers of a range such as "01-03", with as many digits as its beginning has.
std::vector<std::string> numbers_of(const std::string& list, const std::string& range) {
  const auto dash = std::min(range.find('-'), range.size());
  const std::string begin = range.substr(0, dash), end = dash == range.size() ? begin : range.substr(dash + 1);
  const std::uint64_t first = to_number(list, begin), last = to_number(list, end);
  if (last < first || last - first >= kMostNodes) refuse(list, "\"" + range + "\" is not a range");
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
    if ((before + rest).empty()) refuse(list, "a name is empty");
    if (names.size() == kMostNodes) refuse(list, "it has more than " + std::to_string(kMostNodes) + " names");
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

}  // namespace phalanx
