// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace phalanx::history {

/// The conditions of a query, with the values of their parameters in the order of the question marks.
class Conditions {
 public:
  using Value = std::variant<std::int64_t, std::string>;

  /// Adds the values of question marks that stand before "WHERE". Must be called before the other functions.
  void add_parameters(const std::vector<Value>& values);

  /// Adds a condition with one question mark for each value.
  void add(const std::string& sql, const std::vector<Value>& values = {});

  /// Requires that a column equals `pattern`, or matches it if it has wildcards (*, ? and [...]). Only a pattern
  /// without wildcards can use an index of the column. Adds nothing for an empty pattern.
  void add_pattern(const std::string& column, const std::string& pattern);

  /// Requires that cases.config is the path `pattern`, or that the name of the file is, with or without .yaml.
  void add_config(const std::string& pattern);

  /// Requires that cases.session_id is one of the newest `count` sessions of a suite. 0 means all sessions, and an
  /// empty suite means all suites.
  void add_sessions(const std::string& suite, int count);

  /// Returns the query with "WHERE" and the conditions between the two parts, and with its parameters bound.
  SQLite::Statement prepare(SQLite::Database& connection, const std::string& select, const std::string& order) const;

 private:
  std::string sql_;
  std::vector<Value> values_;
};

}  // namespace phalanx::history
