// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/table_source.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <regex>

namespace phalanx {

std::string to_string(ValueType type) {
  switch (type) {
    case ValueType::kNumber:
      return "number";
    case ValueType::kBoolean:
      return "boolean";
    case ValueType::kText:
      return "text";
    case ValueType::kDate:
      break;
  }
  return "date";
}

std::int64_t find_column(const TableSource& table, const std::string& name) {
  const auto& names = table.names();
  if (const auto found = std::ranges::find(names, name); found != names.end()) return found - names.begin();
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number >= 0 && number < std::ssize(names) ? number : -1;
}

bool is_date(const std::string& text) {
  constexpr std::size_t kLongest = 40;  // the regular expressions below take quadratic time
  if (text.empty() || text.size() > kLongest) return false;
  static const std::string time = R"(([T ,]+\d{1,2}:\d{2}.*)?)";
  static const std::string month = R"((jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)";
  static const std::regex numbers(R"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2})" + time);
  static const std::regex day_first(R"(\d{1,2}([-/.])\d{1,2}\1(\d{4}|\d{2}))" + time);
  static const std::regex words(
      "(" + month + R"([-/. ]+\d{1,2},?[-/. ]+\d{2,4}|\d{1,2}[-/. ]+)" + month + R"([-/. ]+\d{2,4}))" + time,
      std::regex::icase);
  static const std::regex clock(R"(\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)");
  return std::ranges::any_of(std::initializer_list<const std::regex*>{&numbers, &day_first, &words, &clock},
                             [&](const auto* pattern) { return std::regex_match(text, *pattern); });
}

}  // namespace phalanx
