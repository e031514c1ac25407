// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/night_data.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "tools/regress/site/log_excerpt.h"

namespace phalanx::site {
namespace {

Json all_of(SQLite::Statement& rows, Json (*to_json)(SQLite::Statement& row)) {
  Json all = Json::array();
  while (rows.executeStep()) all.push_back(to_json(rows));
  return all;
}

Json run_data_in_night(SQLite::Database& database, SQLite::Statement& row, const RunFiles& files) {
  const std::int64_t id = row.getColumn(0).getInt64();
  const auto status = row.getColumn(3);
  const std::string folder = row.getColumn(6).getString();
  Json run{{"id", id},
           {"attempt", row.getColumn(1).getInt()},
           {"role", row.getColumn(2).getString()},
           {"exit", status.isNull() ? Json(nullptr) : Json(status.getInt())},
           {"seconds", row.getColumn(4).isNull() ? Json(nullptr) : rounded(row.getColumn(4).getDouble())},
           {"error", row.getColumn(5).getString()},
           {"folder", files.link_to(folder)}};
  Json unmet = Json::array();
  for (const auto& expectation : expectation_data(database, id)) {
    if (!expectation.at("met").get<bool>()) unmet.push_back(expectation);
  }
  if (!status.isNull() && status.getInt() != 0) run.update(log_data(files, folder));
  run["unmet"] = std::move(unmet);
  return run;
}

Json runs_of_case(SQLite::Database& database, std::int64_t case_row, const RunFiles& files) {
  SQLite::Statement rows(database,
                         "SELECT id, attempt, role, exit_status, seconds, error, folder FROM runs WHERE case_id = ? "
                         "ORDER BY attempt, id");
  rows.bind(1, case_row);
  Json runs = Json::array();
  while (rows.executeStep()) runs.push_back(run_data_in_night(database, rows, files));
  return runs;
}

}  // namespace

Json expectation_data(SQLite::Database& database, std::int64_t run) {
  SQLite::Statement rows(database, "SELECT key, wanted, got, met FROM expectations WHERE run_id = ? ORDER BY met, key");
  rows.bind(1, run);
  return all_of(rows, [](SQLite::Statement& row) {
    return Json{{"key", row.getColumn(0).getString()},
                {"wanted", row.getColumn(1).getString()},
                {"got", row.getColumn(2).getString()},
                {"met", row.getColumn(3).getInt() != 0}};
  });
}

Json log_data(const RunFiles& files, const std::string& folder) {
  Json logs = Json::array(), stalls = Json::array();
  for (const char* name : {"stderr.log", "stdout.log"}) {
    const LogExcerpt excerpt = read_excerpt(files.path_of(folder) / name);
    for (const auto& stall : excerpt.stalls) stalls.push_back(stall);
    if (excerpt.tail.empty()) continue;
    logs.push_back({{"name", name},
                    {"tail", excerpt.tail},
                    {"whole", excerpt.whole},
                    {"link", files.link_to(folder + "/" + name)}});
  }
  return {{"logs", logs}, {"stalls", stalls}};
}

Json night_data(SQLite::Database& database, const History& history, const Night& night, const RunFiles& files) {
  Json cases = Json::array();
  for (const auto session : night.sessions) {
    SQLite::Statement rows(database,
                           "SELECT id, name, config, overrides, ranks, hosts, state, reason FROM cases "
                           "WHERE session_id = ? ORDER BY name");
    rows.bind(1, session);
    while (rows.executeStep()) {
      const std::int64_t row = rows.getColumn(0).getInt64();
      cases.push_back({{"case", history.case_of_row.at(row)},
                       {"name", rows.getColumn(1).getString()},
                       {"config", rows.getColumn(2).getString()},
                       {"overrides", rows.getColumn(3).getString()},
                       {"ranks", rows.getColumn(4).getInt()},
                       {"hosts", rows.getColumn(5).getInt()},
                       {"state", rows.getColumn(6).getString()},
                       {"reason", rows.getColumn(7).getString()},
                       {"runs", runs_of_case(database, row, files)}});
    }
  }
  return {{"id", night.id}, {"cases", cases}};
}

}  // namespace phalanx::site
