// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::history {

/// Reads the columns of the current row of a query, one after the other.
class Row {
 public:
  explicit Row(const SQLite::Statement& statement) : statement_(statement) {}

  std::string text() { return statement_.getColumn(next_++).getString(); }
  std::int64_t integer() { return statement_.getColumn(next_++).getInt64(); }
  int small() { return statement_.getColumn(next_++).getInt(); }

  /// Returns NaN for NULL.
  double number() { return optional_number().value_or(std::numeric_limits<double>::quiet_NaN()); }

  std::optional<double> optional_number() {
    const SQLite::Column column = statement_.getColumn(next_++);
    return column.isNull() ? std::nullopt : std::optional(column.getDouble());
  }

  std::optional<std::int64_t> optional_integer() {
    const SQLite::Column column = statement_.getColumn(next_++);
    return column.isNull() ? std::nullopt : std::optional<std::int64_t>(column.getInt64());
  }

 private:
  const SQLite::Statement& statement_;
  int next_ = 0;
};

/// Executes a query, and returns the result of `to_record` for each row.
template <class ToRecord>
auto all_rows(SQLite::Statement statement, const ToRecord& to_record) {
  std::vector<decltype(to_record(std::declval<Row&>()))> records;
  while (statement.executeStep()) {
    Row row(statement);
    records.push_back(to_record(row));
  }
  return records;
}

}  // namespace phalanx::history
