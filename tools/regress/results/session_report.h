// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/history/database.h"

namespace phalanx::regress {

/// The outcome of one case of a session.
struct CaseReport {
  std::string name{};
  std::string config{};
  history::CaseState state = history::CaseState::kPlanned;
  std::string reason{};
  double seconds = 0;    // of all its runs
  std::string folder{};  // of its last run, relative to the folder of the database; empty: it has not run
};

/// The outcome of a session.
struct SessionReport {
  std::int64_t id = 0;
  std::string suite{};
  std::string shard{};
  std::string commit{};
  bool dirty = false;
  std::int64_t started_at = 0;   // seconds since 1970 (UTC)
  std::int64_t finished_at = 0;  // the same; 0: not finished
  std::vector<CaseReport> cases{};

  int count(history::CaseState state) const;

  /// Returns true if no case has failed: passed, skipped and quarantined ones have not.
  bool passed() const;
};

/// Reads the outcome of a session so far.
SessionReport read_report(history::Database& database, std::int64_t session);

/// Returns a sentence such as "40 cases: 38 passed, 1 failed, 1 quarantined".
std::string to_sentence(const SessionReport& report);

/// Returns the summary that notification commands get: {"suite", "status", "commit", "counts", "failures", ...} as
/// JSON. `folder` is the absolute path of the output folder.
std::string to_json(const SessionReport& report, const std::string& folder);

/// Returns a JUnit XML document with a test case for each case. The logs of cases that failed are read below `folder`:
/// their last lines and the reports of ranks that waited are in it. `host` is the machine on which the session ran.
std::string to_junit(const SessionReport& report, const std::string& folder, const std::string& host);

}  // namespace phalanx::regress
