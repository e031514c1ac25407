// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selection_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/text.h"

namespace phalanx {
namespace {

using Row = std::array<std::string, 7>;

Row row_of(const ParsedRule& rule) {
  return {std::string(to_string(rule.op)),
          rule.up_to == kAnySize ? kAny : format_bytes(rule.up_to),
          rule.ranks == 0 ? kAny : std::to_string(rule.ranks),
          rule.scope ? to_string(*rule.scope) : kAny,
          rule.device ? c10::DeviceTypeName(*rule.device, /*lower_case=*/true) : kAny,
          rule.backend.empty() ? kOwn : rule.backend,
          rule.algorithm == nullptr ? kNative : rule.algorithm->name};
}

std::string format(const std::vector<Row>& rows) {
  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace

SelectionTable::SelectionTable(std::vector<SelectionRule> rules) : rules_(std::move(rules)) {
  auto problems = problems_of(rules_, "selection", "rules");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  for (const auto& rule : rules_) parsed_.push_back(parse(rule));
}

SelectionTable SelectionTable::followed_by(const SelectionTable& next) const {
  SelectionTable both = *this;
  both.rules_.insert(both.rules_.end(), next.rules_.begin(), next.rules_.end());
  both.parsed_.insert(both.parsed_.end(), next.parsed_.begin(), next.parsed_.end());
  return both;
}

std::vector<std::string> SelectionTable::backends() const {
  std::vector<std::string> names;
  for (const auto& rule : parsed_) {
    if (!rule.backend.empty() && std::ranges::find(names, rule.backend) == names.end()) names.push_back(rule.backend);
  }
  return names;
}

bool SelectionTable::depends_on_scope() const {
  return std::ranges::any_of(parsed_, [](const ParsedRule& rule) { return rule.scope.has_value(); });
}

std::string SelectionTable::to_text() const {
  std::vector<Row> rows{{"operation", "up to", "ranks", "scope", "device", "backend", "algorithm"}};
  for (const auto& rule : parsed_) rows.push_back(row_of(rule));
  rows.push_back({"all", kAny, kAny, kAny, kAny, kOwn, kNative});
  return format(rows);
}

}  // namespace phalanx
