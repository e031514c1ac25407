// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/session_store.h"

#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/history/queries.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

std::vector<std::pair<std::string, StoredCase>> stored_cases(history::Database& database, std::int64_t session) {
  SQLite::Statement rows(database.connection(),
                         "SELECT c.id, c.name, c.state, c.reason, coalesce(max(r.attempt), 0) FROM cases c "
                         "LEFT JOIN runs r ON r.case_id = c.id WHERE c.session_id = ? GROUP BY c.id ORDER BY c.id");
  rows.bind(1, session);
  std::vector<std::pair<std::string, StoredCase>> cases;
  while (rows.executeStep()) {
    cases.emplace_back(rows.getColumn(1).getString(),
                       StoredCase{.id = rows.getColumn(0).getInt64(),
                                  .state = history::parse_case_state(rows.getColumn(2).getString()),
                                  .reason = rows.getColumn(3).getString(),
                                  .attempts = rows.getColumn(4).getInt()});
  }
  return cases;
}

// Returns true if `unfinished` is about the same commit, and began recently enough to be continued.
bool may_continue(const history::StoredSession& unfinished, const history::Session& session) {
  const history::Session& earlier = unfinished.session;
  return earlier.git_commit == session.git_commit && earlier.git_dirty == session.git_dirty &&
         session.started_at - earlier.started_at < kLongestPause;
}

bool has_cases(const std::vector<std::pair<std::string, StoredCase>>& stored, const std::vector<PlannedCase>& planned) {
  return std::ranges::equal(stored, planned, {}, [](const auto& one) { return one.first; }, &PlannedCase::name);
}

void abandon(history::Database& database, std::int64_t session) {
  for (const auto& [name, stored] : stored_cases(database, session)) {
    if (is_final(stored.state)) continue;
    database.set_state(stored.id, CaseState::kError, "regress ended before this case had, and was not started again");
  }
  database.finish_session(session);
}

StoredSession continued(history::Database& database, std::int64_t id,
                        const std::vector<std::pair<std::string, StoredCase>>& cases) {
  StoredSession session{.id = id, .resumed = true};
  for (auto [name, stored] : cases) {
    if (!is_final(stored.state)) {
      stored.state = CaseState::kPlanned;
      database.set_state(stored.id, CaseState::kPlanned, "");
    }
    session.cases.push_back(stored);
  }
  return session;
}

StoredSession begun(history::Database& database, const history::Session& session,
                    const std::vector<PlannedCase>& cases) {
  StoredSession stored{.id = database.begin_session(session)};
  for (const auto& planned : cases) {
    const auto id = database.add_case(stored.id, {.name = planned.name,
                                                  .config = planned.config.empty() ? planned.command : planned.config,
                                                  .overrides = planned.overrides,
                                                  .ranks = planned.ranks,
                                                  .hosts = planned.hosts});
    stored.cases.push_back({.id = id});
  }
  return stored;
}

}  // namespace

StoredSession begin_or_continue(history::Database& database, const history::Session& session,
                                const std::vector<PlannedCase>& cases) {
  std::optional<std::int64_t> last;
  for (const auto& unfinished : history::unfinished_sessions(database, session.suite, session.shard)) {
    if (!last && may_continue(unfinished, session) && has_cases(stored_cases(database, unfinished.id), cases)) {
      last = unfinished.id;
    } else {
      abandon(database, unfinished.id);
    }
  }
  return last ? continued(database, *last, stored_cases(database, *last)) : begun(database, session, cases);
}

bool is_final(CaseState state) { return state != CaseState::kPlanned && state != CaseState::kRunning; }

std::vector<double> earlier_throughput(history::Database& database, std::int64_t session, const std::string& case_name,
                                       const history::Environment& environment, std::int64_t nights) {
  SQLite::Statement rows(database.connection(),
                         "SELECT m.value FROM cases c JOIN sessions s ON s.id = c.session_id "
                         "JOIN runs r ON r.case_id = c.id JOIN environments e ON e.id = r.environment_id "
                         "JOIN metrics m ON m.run_id = r.id AND m.split = 'run' AND m.epoch = -1 "
                         "AND m.name = 'throughput' "
                         "WHERE c.name = ?1 AND s.id < ?2 AND s.suite = (SELECT suite FROM sessions WHERE id = ?2) "
                         "AND r.role = 'main' AND r.exit_status = 0 AND m.value IS NOT NULL "
                         "AND e.hardware = ?3 AND e.cores = ?4 AND e.hosts = ?5 ORDER BY s.id DESC LIMIT ?6");
  rows.bind(1, case_name);
  rows.bind(2, session);
  rows.bind(3, environment.hardware);
  rows.bind(4, environment.cores);
  rows.bind(5, nlohmann::json(environment.hosts).dump());
  rows.bind(6, nights);
  std::vector<double> values;
  while (rows.executeStep()) values.push_back(rows.getColumn(0).getDouble());
  return values;
}

}  // namespace phalanx::regress
