// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/run_data.h"

#include <cmath>
#include <optional>
#include <utility>

#include "engine/html/chart.h"
#include "engine/html/key_metrics.h"
#include "engine/html/run_record.h"
#include "engine/html/run_summary.h"
#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/regress/site/night_data.h"
#include "tools/report/comparison.h"

namespace phalanx::site {
namespace {

constexpr std::size_t kMaxCurvePoints = 200;

Json curve_data(const Curve& curve) {
  Json points = Json::array();
  for (const auto& [step, value] : thin(curve, kMaxCurvePoints)) points.push_back({step, rounded(value)});
  return points;
}

Json curves_data(const std::map<std::string, Curve>& curves) {
  Json all = Json::object();
  for (const auto& [name, curve] : curves) all[name] = curve_data(curve);
  return all;
}

Json spread_data(const std::string& name, const RankSpread& spread) {
  return {name, rounded(spread.mean), rounded(spread.least), spread.least_rank, rounded(spread.most), spread.most_rank};
}

// Returns the time of a step: rows [name, mean, least, its rank, most, its rank], in seconds.
Json step_time_data(const RunRecord& record) {
  if (!record.summary || !record.summary->step_time) return nullptr;
  const TimeOfStep& time = *record.summary->step_time;
  Json phases = Json::array();
  for (const auto& [name, spread] : time.phases) phases.push_back(spread_data(name, spread));
  return {{"phases", phases},
          {"own_work", spread_data("own work", time.own_work)},
          {"whole", spread_data("total", time.whole)},
          {"straggler", time.straggler}};
}

// Returns the stretches with another number of ranks: rows [from, to or null, ranks].
Json stretch_data(const RunRecord& record) {
  Json stretches = Json::array();
  if (!record.summary) return stretches;
  for (const auto& [from, to, ranks] : record.summary->stretches) {
    stretches.push_back({from, std::isfinite(to) ? Json(to) : Json(nullptr), ranks});
  }
  return stretches;
}

std::string name_of_config(const std::map<std::string, std::string>& config) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const auto& [key, value] : config) {
    for (const char c : key + "\n" + value + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return format_text("%016llx", static_cast<unsigned long long>(hash));
}

// Adds what the run folder has. Throws DataError if that is malformed.
void add_run_folder(RunData& data, const std::string& folder) {
  const RunRecord record = read_run(RunFolder(folder));
  Json key_metrics = Json::array();
  for (const auto& metric : key_metrics_of(record)) key_metrics.push_back({metric.name, metric.text});
  data.run["subject"] = subject_of(record);
  data.run["key_metrics"] = key_metrics;
  data.run["curves"] = curves_data(record.curves);
  data.run["phases"] = curves_data(record.phases);
  data.run["step_time"] = step_time_data(record);
  data.run["stretches"] = stretch_data(record);
  for (auto& [key, value] : flatten_config(record)) data.config[key] = value;
  if (data.config.empty()) return;
  data.config_name = name_of_config(data.config);
  data.run["config"] = data.config_name;
}

Json environment_data(SQLite::Database& database, std::int64_t environment) {
  SQLite::Statement row(database, "SELECT hardware, cores, hosts, versions FROM environments WHERE id = ?");
  row.bind(1, environment);
  if (!row.executeStep()) return nullptr;
  return {{"hardware", row.getColumn(0).getString()},
          {"cores", row.getColumn(1).getInt()},
          {"hosts", row.getColumn(2).getString()},
          {"versions", row.getColumn(3).getString()}};
}

Json metric_data(SQLite::Database& database, std::int64_t run) {
  SQLite::Statement rows(database,
                         "SELECT split, name, value FROM metrics WHERE run_id = ? AND epoch = -1 ORDER BY split, name");
  rows.bind(1, run);
  Json metrics = Json::object();
  while (rows.executeStep()) {
    const auto value = rows.getColumn(2);
    metrics[rows.getColumn(0).getString() + "/" + rows.getColumn(1).getString()] =
        value.isNull() ? Json(nullptr) : rounded(value.getDouble());
  }
  return metrics;
}

Json artefact_data(SQLite::Database& database, std::int64_t run, const RunFiles& files) {
  SQLite::Statement rows(database, "SELECT name, path FROM artefacts WHERE run_id = ? ORDER BY name");
  rows.bind(1, run);
  Json artefacts = Json::array();
  while (rows.executeStep()) {
    artefacts.push_back({rows.getColumn(0).getString(), files.link_to(rows.getColumn(1).getString())});
  }
  return artefacts;
}

// Returns the row of the run as JSON, and its folder.
std::pair<Json, std::string> row_data(SQLite::Database& database, const History& history, std::int64_t run) {
  SQLite::Statement row(
      database,
      "SELECT runs.case_id, cases.session_id, cases.name, cases.config, cases.overrides, cases.ranks, "
      "cases.hosts, cases.state, cases.reason, runs.attempt, runs.role, runs.started_at, runs.seconds, "
      "runs.exit_status, runs.error, runs.folder, runs.environment_id "
      "FROM runs JOIN cases ON cases.id = runs.case_id WHERE runs.id = ?");
  row.bind(1, run);
  if (!row.executeStep()) throw DataError("the database has no run " + std::to_string(run));
  Json data{{"id", run},
            {"case", history.case_of_row.at(row.getColumn(0).getInt64())},
            {"night", history.night_of.at(row.getColumn(1).getInt64())},
            {"name", row.getColumn(2).getString()},
            {"config_file", row.getColumn(3).getString()},
            {"overrides", row.getColumn(4).getString()},
            {"ranks", row.getColumn(5).getInt()},
            {"hosts", row.getColumn(6).getInt()},
            {"state", row.getColumn(7).getString()},
            {"reason", row.getColumn(8).getString()},
            {"attempt", row.getColumn(9).getInt()},
            {"role", row.getColumn(10).getString()},
            {"started", row.getColumn(11).getInt64()},
            {"seconds", row.getColumn(12).isNull() ? Json(nullptr) : rounded(row.getColumn(12).getDouble())},
            {"exit", row.getColumn(13).isNull() ? Json(nullptr) : Json(row.getColumn(13).getInt())},
            {"error", row.getColumn(14).getString()},
            {"config", ""}};
  const auto environment = row.getColumn(16);
  data["environment"] = environment.isNull() ? Json(nullptr) : environment_data(database, environment.getInt64());
  return {std::move(data), row.getColumn(15).getString()};
}

}  // namespace

RunData run_data(SQLite::Database& database, const History& history, std::int64_t run, const RunFiles& files) {
  auto [row, folder] = row_data(database, history, run);
  RunData data{.run = std::move(row), .config_name = {}};
  data.run["metrics"] = metric_data(database, run);
  data.run["expectations"] = expectation_data(database, run);
  data.run["artefacts"] = artefact_data(database, run, files);
  data.run["folder"] = files.link_to(folder);
  data.run.update(log_data(files, folder));
  try {
    add_run_folder(data, files.path_of(folder));
  } catch (const DataError& error) {
    data.run["problem"] = error.what();
  }
  return data;
}

}  // namespace phalanx::site
