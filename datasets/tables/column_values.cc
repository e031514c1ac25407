// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/column_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace phalanx {
namespace {

std::string spelled(double number, ValueType type) {
  if (type == ValueType::kBoolean) return number != 0 ? "true" : "false";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number + 0.0).ptr;  // -0 becomes 0
  return {text.data(), end};
}

}  // namespace

TextValues categories_of(const TableSource& table, std::int64_t column, ValueType type) {
  if (type == ValueType::kText || type == ValueType::kDate) return table.texts(column);
  TextValues all;
  std::unordered_map<double, std::int64_t> codes;
  for (const double number : table.numbers(column)) {
    if (std::isnan(number)) {
      all.codes.push_back(-1);
      continue;
    }
    const auto [found, added] = codes.try_emplace(number, std::ssize(all.values));
    if (added) all.values.push_back(spelled(number, type));
    all.codes.push_back(found->second);
  }
  return all;
}

std::vector<double> values_of(const TableSource& table, std::int64_t column, const ColumnEncoding& encoding) {
  if (!encoding.category) return table.numbers(column);
  const auto texts = categories_of(table, column, encoding.type);
  std::vector<double> indices;
  for (const auto& text : texts.values) {
    const auto found = std::ranges::find(encoding.categories, text);
    indices.push_back(found == encoding.categories.end() ? kUnknown
                                                         : static_cast<double>(found - encoding.categories.begin()));
  }
  std::vector<double> values;
  values.reserve(texts.codes.size());
  for (const auto code : texts.codes) {
    values.push_back(code < 0 ? std::numeric_limits<double>::quiet_NaN() : indices[static_cast<std::size_t>(code)]);
  }
  return values;
}

std::vector<std::int64_t> kept_rows(const std::vector<ColumnEncoding>& columns,
                                    const std::vector<std::vector<double>>& values,
                                    const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> kept;
  for (const auto row : rows) {
    bool keep = true;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      keep &=
          columns[i].missing != ColumnEncoding::Missing::kDrop || !std::isnan(values[i][static_cast<std::size_t>(row)]);
    }
    if (keep) kept.push_back(row);
  }
  return kept;
}

}  // namespace phalanx
