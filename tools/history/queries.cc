// SPDX-License-Identifier: Apache-2.0
#include "tools/history/queries.h"

#include <SQLiteCpp/Statement.h>

#include <utility>

#include "framework/base/json.h"
#include "tools/history/conditions.h"
#include "tools/history/rows.h"

namespace phalanx::history {
namespace {

constexpr const char* kSession =
    "sessions.id, sessions.suite, sessions.started_at, sessions.git_commit, sessions.git_dirty, sessions.shard, "
    "sessions.finished_at";
constexpr const char* kCase =
    "cases.id, cases.name, cases.config, cases.overrides, cases.ranks, cases.hosts, cases.state, cases.reason";

StoredSession to_session(Row& row) {
  StoredSession stored;
  stored.id = row.integer();
  stored.session.suite = row.text();
  stored.session.started_at = row.integer();
  stored.session.git_commit = row.text();
  stored.session.git_dirty = row.small() != 0;
  stored.session.shard = row.text();
  stored.finished_at = row.optional_integer();
  return stored;
}

StoredCase to_case(Row& row) {
  StoredCase stored;
  stored.id = row.integer();
  stored.record.name = row.text();
  stored.record.config = row.text();
  stored.record.overrides = parse_json(row.text(), "cases.overrides").as<std::vector<std::string>>();
  stored.record.ranks = row.small();
  stored.record.hosts = row.small();
  stored.record.state = parse_case_state(row.text());
  stored.record.reason = row.text();
  return stored;
}

StoredRun to_run(Row& row, std::size_t metrics) {
  StoredRun run;
  run.session = to_session(row);
  StoredCase stored = to_case(row);
  run.case_id = stored.id;
  run.record = std::move(stored.record);
  run.id = row.integer();
  run.attempt = row.small();
  run.role = row.text();
  run.started_at = row.integer();
  run.seconds = row.optional_number();
  if (const auto status = row.optional_integer()) run.exit_status = static_cast<int>(*status);
  run.error = row.text();
  run.folder = row.text();
  for (std::size_t i = 0; i < metrics; ++i) run.metrics.push_back(row.optional_number());
  return run;
}

// Returns a query for the rows of a table that belong to a run.
SQLite::Statement of_run(Database& database, const std::string& sql, std::int64_t run) {
  SQLite::Statement statement(database.connection(), sql);
  statement.bind(1, run);
  return statement;
}

}  // namespace

std::vector<StoredSession> nights(Database& database, const std::string& suite, int count) {
  Conditions conditions;
  if (!suite.empty()) conditions.add("suite = ?", {suite});
  const std::string limit = count == 0 ? "" : " LIMIT " + std::to_string(count);
  return all_rows(conditions.prepare(database.connection(), std::string("SELECT ") + kSession + " FROM sessions",
                                     "ORDER BY started_at DESC, id DESC" + limit),
                  to_session);
}

std::vector<StoredSession> unfinished_sessions(Database& database, const std::string& suite, const std::string& shard) {
  Conditions conditions;
  conditions.add("suite = ? AND shard = ? AND finished_at IS NULL", {suite, shard});
  return all_rows(conditions.prepare(database.connection(), std::string("SELECT ") + kSession + " FROM sessions",
                                     "ORDER BY started_at DESC, id DESC"),
                  to_session);
}

std::vector<StoredCase> cases_of(Database& database, std::int64_t session) {
  return all_rows(
      of_run(database, std::string("SELECT ") + kCase + " FROM cases WHERE session_id = ? ORDER BY id", session),
      to_case);
}

std::vector<ExpectationResult> expectations_of(Database& database, std::int64_t run) {
  return all_rows(
      of_run(database, "SELECT key, wanted, got, value, met FROM expectations WHERE run_id = ? ORDER BY key", run),
      [](Row& row) {
        ExpectationResult result;
        result.key = row.text();
        result.wanted = row.text();
        result.got = row.text();
        result.value = row.optional_number();
        result.met = row.small() != 0;
        return result;
      });
}

std::vector<Artefact> artefacts_of(Database& database, std::int64_t run) {
  return all_rows(of_run(database, "SELECT name, path FROM artefacts WHERE run_id = ? ORDER BY name", run),
                  [](Row& row) {
                    std::string name = row.text();
                    return Artefact{std::move(name), row.text()};
                  });
}

std::vector<MetricValue> metrics_of(Database& database, std::int64_t run) {
  return all_rows(
      of_run(database, "SELECT split, epoch, name, value FROM metrics WHERE run_id = ? ORDER BY split, epoch, name",
             run),
      [](Row& row) {
        MetricValue metric;
        metric.split = row.text();
        metric.epoch = row.integer();
        metric.name = row.text();
        metric.value = row.number();
        return metric;
      });
}

std::vector<StoredRun> find_runs(Database& database, const RunFilter& filter) {
  std::string select = std::string("SELECT ") + kSession + ", " + kCase +
                       ", runs.id, runs.attempt, runs.role, runs.started_at, runs.seconds, runs.exit_status, "
                       "runs.error, runs.folder";
  Conditions conditions;
  for (const auto& metric : filter.metrics) {
    select += ", (SELECT value FROM metrics WHERE run_id = runs.id AND split = ? AND epoch = -1 AND name = ?)";
    conditions.add_parameters({metric.split, metric.name});
  }
  // SQLite keeps the order of a CROSS JOIN: the table that is searched by the filter comes first.
  select += filter.folder.empty() ? " FROM cases CROSS JOIN sessions CROSS JOIN runs"
                                  : " FROM runs CROSS JOIN cases CROSS JOIN sessions";
  conditions.add("sessions.id = cases.session_id AND runs.case_id = cases.id");
  if (filter.folder.empty()) conditions.add_sessions(filter.suite, filter.nights);
  conditions.add_pattern("cases.name", filter.case_name);
  conditions.add_config(filter.config);
  if (!filter.state.empty()) conditions.add("cases.state = ?", {filter.state});
  if (!filter.folder.empty()) conditions.add("runs.folder = ?", {filter.folder});
  return all_rows(
      conditions.prepare(database.connection(), select,
                         "ORDER BY sessions.started_at DESC, sessions.id DESC, cases.id, runs.attempt, runs.role"),
      [&](Row& row) { return to_run(row, filter.metrics.size()); });
}

}  // namespace phalanx::history
