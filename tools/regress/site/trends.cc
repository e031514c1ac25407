// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/trends.h"

#include <algorithm>
#include <utility>

#include "tools/history/change_points.h"

namespace phalanx::site {
namespace {

// Returns a metric as readers call it: "throughput" for "run/throughput", "test accuracy" for "test/accuracy".
std::string title_of(const std::string& metric) {
  const auto name = metric.find('/') + 1;
  std::string title = metric.starts_with("run/") || metric.starts_with("case/") ? metric.substr(name) : metric;
  std::ranges::replace(title, '/', ' ');
  std::ranges::replace(title, '_', ' ');
  return title;
}

// Returns the last nights in which a metric was measured, with their values.
std::vector<history::Night> series_of(const SuiteHistory& suite,
                                      const std::map<std::int64_t, std::vector<Trends::Point>>& by_night) {
  std::vector<history::Night> series;
  for (const auto& night : suite.nights) {
    const auto points = by_night.find(night.id);
    if (points == by_night.end()) continue;
    history::Night measured{.commit = night.commit, .values = {}, .session = night.id, .started_at = night.started_at};
    for (const auto& point : points->second) measured.values.push_back(point.value);
    series.push_back(std::move(measured));
  }
  if (series.size() > kMaxNights) series.erase(series.begin(), series.end() - kMaxNights);
  return series;
}

}  // namespace

std::map<std::int64_t, Trends> read_trends(SQLite::Database& database, const History& history) {
  // A run that missed an expectation (status 4) has completed; its metrics belong to the trend. Metrics of split "case"
  // are recorded with the run that completes a comparison, whatever its role.
  SQLite::Statement rows(database,
                         "SELECT cases.id, cases.session_id, runs.id, metrics.split, metrics.name, metrics.value "
                         "FROM runs JOIN cases ON cases.id = runs.case_id JOIN metrics ON metrics.run_id = runs.id "
                         "WHERE (runs.role = 'main' OR metrics.split = 'case') AND runs.exit_status IN (0, 4) "
                         "AND metrics.epoch = -1 AND metrics.value IS NOT NULL ORDER BY runs.id");
  std::map<std::int64_t, Trends> trends;
  while (rows.executeStep()) {
    Trends& of_case = trends[history.case_of_row.at(rows.getColumn(0).getInt64())];
    const std::int64_t night = history.night_of.at(rows.getColumn(1).getInt64());
    const std::string metric = rows.getColumn(3).getString() + "/" + rows.getColumn(4).getString();
    of_case.metrics[metric][night].push_back({rows.getColumn(2).getInt64(), rows.getColumn(5).getDouble()});
  }
  return trends;
}

std::vector<Change> find_changes(const SuiteHistory& suite, const CaseHistory& one, const Trends& trends) {
  std::vector<Change> changes;
  for (const auto& [metric, by_night] : trends.metrics) {
    const auto series = series_of(suite, by_night);
    for (const auto& found : history::find_change_points(series)) {
      changes.push_back({.case_id = one.id,
                         .metric = metric,
                         .night = series.at(found.night).session,
                         .before = found.median_before,
                         .after = found.median_after,
                         .text = history::describe(title_of(metric) + " of " + one.name, found)});
    }
  }
  return changes;
}

Json change_data(const Change& change) {
  return {{"case", change.case_id},           {"metric", change.metric},        {"night", change.night},
          {"before", rounded(change.before)}, {"after", rounded(change.after)}, {"text", change.text}};
}

Json case_data(const SuiteHistory& suite, const CaseHistory& one, const Trends& trends,
               const std::vector<Change>& changes) {
  Json metrics = Json::object(), changed = Json::array();
  for (const auto& [metric, by_night] : trends.metrics) {
    Json nights = Json::array();
    for (const auto& night : suite.nights) {
      const auto points = by_night.find(night.id);
      if (points == by_night.end()) continue;
      Json values = Json::array();
      for (const auto& point : points->second) values.push_back({point.run, rounded(point.value)});
      nights.push_back({night.id, std::move(values)});
    }
    metrics[metric] = std::move(nights);
  }
  for (const auto& change : changes) changed.push_back(change_data(change));
  return {{"id", one.id}, {"metrics", metrics}, {"changes", changed}};
}

}  // namespace phalanx::site
