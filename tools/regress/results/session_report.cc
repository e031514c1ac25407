// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/results/session_report.h"

#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

constexpr std::array kInOrder{CaseState::kPassed,  CaseState::kFailed,  CaseState::kError,  CaseState::kQuarantined,
                              CaseState::kSkipped, CaseState::kRunning, CaseState::kPlanned};

bool has_failed(const CaseReport& one) {
  return one.state != CaseState::kPassed && one.state != CaseState::kSkipped && one.state != CaseState::kQuarantined;
}

std::vector<CaseReport> read_cases(history::Database& database, std::int64_t session) {
  SQLite::Statement rows(
      database.connection(),
      "SELECT c.name, c.config, c.state, c.reason, "
      "(SELECT coalesce(sum(r.seconds), 0) FROM runs r WHERE r.case_id = c.id), "
      "coalesce((SELECT r.folder FROM runs r WHERE r.case_id = c.id ORDER BY r.id DESC LIMIT 1), '') "
      "FROM cases c WHERE c.session_id = ? ORDER BY c.id");
  rows.bind(1, session);
  std::vector<CaseReport> cases;
  while (rows.executeStep()) {
    cases.push_back({.name = rows.getColumn(0).getString(),
                     .config = rows.getColumn(1).getString(),
                     .state = history::parse_case_state(rows.getColumn(2).getString()),
                     .reason = rows.getColumn(3).getString(),
                     .seconds = rows.getColumn(4).getDouble(),
                     .folder = rows.getColumn(5).getString()});
  }
  return cases;
}

}  // namespace

int SessionReport::count(CaseState state) const {
  return static_cast<int>(std::ranges::count(cases, state, &CaseReport::state));
}

bool SessionReport::passed() const { return std::ranges::none_of(cases, has_failed); }

SessionReport read_report(history::Database& database, std::int64_t session) {
  SQLite::Statement row(database.connection(),
                        "SELECT suite, shard, git_commit, git_dirty, started_at, coalesce(finished_at, 0) "
                        "FROM sessions WHERE id = ?");
  row.bind(1, session);
  if (!row.executeStep()) throw DataError(database.path() + ": has no session " + std::to_string(session));
  return {.id = session,
          .suite = row.getColumn(0).getString(),
          .shard = row.getColumn(1).getString(),
          .commit = row.getColumn(2).getString(),
          .dirty = row.getColumn(3).getInt() != 0,
          .started_at = row.getColumn(4).getInt64(),
          .finished_at = row.getColumn(5).getInt64(),
          .cases = read_cases(database, session)};
}

std::string to_sentence(const SessionReport& report) {
  std::string counts;
  for (const CaseState state : kInOrder) {
    if (const int count = report.count(state); count > 0) {
      counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + history::to_text(state);
    }
  }
  const std::size_t total = report.cases.size();
  return std::to_string(total) + (total == 1 ? " case: " : " cases: ") + counts;
}

std::string to_json(const SessionReport& report, const std::string& folder) {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object(), failures = nlohmann::ordered_json::array();
  for (const CaseState state : kInOrder) counts[history::to_text(state)] = report.count(state);
  for (const auto& one : report.cases) {
    if (!has_failed(one) && one.state != CaseState::kQuarantined) continue;
    failures.push_back({{"case", one.name},
                        {"state", history::to_text(one.state)},
                        {"reason", one.reason},
                        {"folder", one.folder.empty() ? "" : folder + "/" + one.folder}});
  }
  return nlohmann::ordered_json{{"suite", report.suite},
                                {"status", report.passed() ? "passed" : "failed"},
                                {"text", report.suite + ": " + to_sentence(report)},
                                {"shard", report.shard},
                                {"commit", report.commit},
                                {"dirty", report.dirty},
                                {"started_at", report.started_at},
                                {"finished_at", report.finished_at},
                                {"counts", counts},
                                {"failures", failures},
                                {"database", folder + "/results.sqlite"},
                                {"report", folder + "/report/index.html"}}
             .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace phalanx::regress
