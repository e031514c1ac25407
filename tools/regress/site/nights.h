// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace phalanx::site {

/// One night of a suite: a session, or the sessions of all shards of one commit. It is called by its first session.
struct Night {
  std::int64_t id = 0;
  std::string suite;
  std::vector<std::int64_t> sessions{};
  std::int64_t started_at = 0, finished_at = 0;  // seconds since the epoch; finished_at is 0 while a session runs
  std::string commit;
  bool dirty = false;
  std::string shard;  // of the first session
};

/// A case of a suite over all nights. It is called by its first row in the database.
struct CaseHistory {
  std::int64_t id = 0;
  std::string name, config;
  std::string states{};  // a letter for each night of the suite (letter_of), '.' for a night without the case
};

struct SuiteHistory {
  std::string name;
  std::vector<Night> nights{};       // by time
  std::vector<CaseHistory> cases{};  // by name
};

/// The contents of a database by suite, and where its rows belong.
struct History {
  std::vector<SuiteHistory> suites{};                  // by name
  std::map<std::int64_t, std::int64_t> night_of{};     // by session
  std::map<std::int64_t, std::int64_t> case_of_row{};  // CaseHistory::id by row of table cases
};

History read_history(SQLite::Database& database);

/// Returns the letter of a state: 'p' passed, 'f' failed, 'e' error, 's' skipped, 'q' quarantined, 'r' running,
/// 'l' planned, '?' another one.
char letter_of(const std::string& state);

}  // namespace phalanx::site
