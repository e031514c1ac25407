// SPDX-License-Identifier: Apache-2.0
#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tools/history/conditions.h"
#include "tools/history/queries.h"
#include "tools/history/rows.h"

namespace phalanx::history {
namespace {

// A run has completed if its exit status is 0, or 4 because an expectation did not hold (launch/exit_status.h).
constexpr const char* kSelect =
    "SELECT cases.name, metrics.split, metrics.name, environments.hardware, environments.cores, sessions.id, "
    "sessions.started_at, sessions.git_commit, metrics.value "
    "FROM cases CROSS JOIN sessions CROSS JOIN runs CROSS JOIN metrics "
    "LEFT JOIN environments ON environments.id = runs.environment_id";
constexpr const char* kCompletedRuns =
    "sessions.id = cases.session_id AND runs.case_id = cases.id AND (runs.role = 'main' OR metrics.split = 'case') AND "
    "runs.exit_status IN (0, 4) AND metrics.run_id = runs.id AND metrics.epoch = -1 AND metrics.value IS NOT NULL";
constexpr const char* kOrder =
    "ORDER BY cases.name, metrics.split, metrics.name, sessions.started_at, sessions.id, runs.attempt";

// A value of one run. The series has its case, metric and hardware, and no nights.
struct Sample {
  Series series;
  Night night;
};

Sample to_sample(Row& row) {
  Sample sample;
  sample.series.case_name = row.text();
  sample.series.metric.split = row.text();
  sample.series.metric.name = row.text();
  sample.series.hardware = row.text();
  sample.series.cores = row.small();
  sample.night.session = row.integer();
  sample.night.started_at = row.integer();
  sample.night.commit = row.text();
  sample.night.values = {row.number()};
  return sample;
}

bool same_metric(const Series& one, const Series& other) {
  return one.case_name == other.case_name && one.metric == other.metric;
}

bool same_hardware(const Series& one, const Series& other) {
  return one.hardware == other.hardware && one.cores == other.cores;
}

void append(Series& series, Night night) {
  if (!series.nights.empty() && series.nights.back().session == night.session) {
    series.nights.back().values.push_back(night.values.front());
  } else {
    series.nights.push_back(std::move(night));
  }
}

// Returns the series of samples [begin, end), which have the same case and metric.
Series to_series(const std::vector<Sample>& samples, std::size_t begin, std::size_t end) {
  Series series = samples[end - 1].series;
  for (std::size_t i = begin; i < end; ++i) {
    if (same_hardware(series, samples[i].series)) append(series, samples[i].night);
  }
  return series;
}

}  // namespace

std::vector<Series> find_series(Database& database, const SeriesFilter& filter) {
  Conditions conditions;
  conditions.add(kCompletedRuns);
  conditions.add_sessions(filter.suite, filter.nights);
  conditions.add_pattern("cases.name", filter.case_name);
  conditions.add_config(filter.config);
  if (filter.metric) {
    conditions.add("metrics.split = ? AND metrics.name = ?", {filter.metric->split, filter.metric->name});
  }
  const auto samples = all_rows(conditions.prepare(database.connection(), kSelect, kOrder), to_sample);
  std::vector<Series> all;
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    while (end < samples.size() && same_metric(samples[begin].series, samples[end].series)) ++end;
    all.push_back(to_series(samples, begin, end));
  }
  return all;
}

std::vector<Night> series(Database& database, const std::string& case_name, const std::string& metric) {
  SeriesFilter filter;
  filter.case_name = case_name;
  filter.metric = parse_metric(metric);
  // A name with brackets may also match other names as a pattern.
  const auto all = find_series(database, filter);
  const auto found = std::ranges::find(all, case_name, &Series::case_name);
  return found == all.end() ? std::vector<Night>() : found->nights;
}

}  // namespace phalanx::history
