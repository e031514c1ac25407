// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/history/database.h"
#include "tools/regress/suite/planned_case.h"

namespace phalanx::regress {

/// A case of a session in the database.
struct StoredCase {
  std::int64_t id = 0;
  history::CaseState state = history::CaseState::kPlanned;
  std::string reason{};
  int attempts = 0;  // number of its last attempt; 0: none has begun
};

/// A session in the database, with its cases in the order in which they were planned.
struct StoredSession {
  std::int64_t id = 0;
  bool resumed = false;  // an earlier process began it
  std::vector<StoredCase> cases{};
};

/// Sessions that began longer ago are not continued.
inline constexpr std::int64_t kLongestPause = 24 * 3600;  // seconds

/// Begins a session, or continues the last one if the process that ran it was killed: if it is not finished, is about
/// the same suite, shard and commit, has the same cases, and began less than kLongestPause before. Cases that were
/// running are then planned again. Other unfinished sessions of the suite and shard are finished; their remaining cases
/// become errors.
StoredSession begin_or_continue(history::Database& database, const history::Session& session,
                                const std::vector<PlannedCase>& cases);

/// Returns true if a case need not run again.
bool is_final(history::CaseState state);

/// Returns the throughput of a case in the last sessions of a suite before `session`, on the same hardware and hosts,
/// newest first: at most `nights` values, each from a run that passed.
std::vector<double> earlier_throughput(history::Database& database, std::int64_t session, const std::string& case_name,
                                       const history::Environment& environment, std::int64_t nights);

}  // namespace phalanx::regress
