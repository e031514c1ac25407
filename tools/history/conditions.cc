// SPDX-License-Identifier: Apache-2.0
#include "tools/history/conditions.h"

#include <cstddef>

namespace phalanx::history {
namespace {

bool has_wildcards(const std::string& pattern) { return pattern.find_first_of("*?[") != std::string::npos; }

}  // namespace

void Conditions::add_parameters(const std::vector<Value>& values) {
  values_.insert(values_.end(), values.begin(), values.end());
}

void Conditions::add(const std::string& sql, const std::vector<Value>& values) {
  sql_ += (sql_.empty() ? "" : " AND ") + sql;
  add_parameters(values);
}

void Conditions::add_pattern(const std::string& column, const std::string& pattern) {
  if (pattern.empty()) return;
  if (has_wildcards(pattern)) {
    add("(" + column + " = ? OR " + column + " GLOB ?)", {pattern, pattern});
  } else {
    add(column + " = ?", {pattern});
  }
}

void Conditions::add_config(const std::string& pattern) {
  if (pattern.empty()) return;
  add("(cases.config GLOB ? OR cases.config GLOB ? OR cases.config GLOB ?)",
      {pattern, "*/" + pattern, "*/" + pattern + ".yaml"});
}

void Conditions::add_sessions(const std::string& suite, int count) {
  const std::int64_t limit = count == 0 ? -1 : count;  // SQLite takes a negative limit for none
  if (suite.empty()) {
    add("cases.session_id IN (SELECT id FROM sessions ORDER BY started_at DESC, id DESC LIMIT ?)", {limit});
  } else {
    add("cases.session_id IN (SELECT id FROM sessions WHERE suite = ? ORDER BY started_at DESC, id DESC LIMIT ?)",
        {suite, limit});
  }
}

SQLite::Statement Conditions::prepare(SQLite::Database& connection, const std::string& select,
                                      const std::string& order) const {
  SQLite::Statement statement(connection, select + (sql_.empty() ? " " : " WHERE " + sql_ + " ") + order);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    std::visit([&](const auto& value) { statement.bind(static_cast<int>(i) + 1, value); }, values_[i]);
  }
  return statement;
}

}  // namespace phalanx::history
