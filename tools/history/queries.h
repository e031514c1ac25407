// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/history/change_points.h"
#include "tools/history/database.h"
#include "tools/history/records.h"

// The questions that several programs ask the database of nightly runs. All of them use indexes, so each takes less
// than 100 ms with 10,000 runs. Errors of the file are SQLite::Exceptions.
namespace phalanx::history {

struct StoredSession {
  std::int64_t id = 0;
  Session session;
  std::optional<std::int64_t> finished_at{};  // empty if the session is running or was killed
};

struct StoredCase {
  std::int64_t id = 0;
  Case record;
};

/// Returns the newest sessions of a suite, newest first: at most `count` of them, or all if `count` is 0. An empty
/// suite means all suites.
std::vector<StoredSession> nights(Database& database, const std::string& suite, int count);

/// Returns the sessions of a suite and shard that have not been finished, newest first, for a program that continues
/// after it was killed.
std::vector<StoredSession> unfinished_sessions(Database& database, const std::string& suite, const std::string& shard);

/// Returns the cases of a session, in the order in which they were added.
std::vector<StoredCase> cases_of(Database& database, std::int64_t session);

std::vector<ExpectationResult> expectations_of(Database& database, std::int64_t run);
std::vector<Artefact> artefacts_of(Database& database, std::int64_t run);

/// Returns all values of a run, by split, epoch and name.
std::vector<MetricValue> metrics_of(Database& database, std::int64_t run);

/// A run with its case and its session.
struct StoredRun {
  std::int64_t id = 0;
  std::int64_t case_id = 0;
  StoredSession session;
  Case record;
  int attempt = 1;
  std::string role{};
  std::int64_t started_at = 0;
  std::optional<double> seconds{};   // empty while it runs
  std::optional<int> exit_status{};  // empty while it runs
  std::string error{}, folder{};
  std::vector<std::optional<double>> metrics{};  // final values of RunFilter::metrics; empty: the run has none
};

/// Limits for the runs that are found. Each pattern may have *, ? and [...], as in a shell.
struct RunFilter {
  std::string suite{};      // empty: all suites
  std::string config{};     // path, or name of the file with or without .yaml; empty: all configs
  std::string case_name{};  // empty: all cases
  std::string state{};      // as text; empty: all states
  std::string folder{};     // exact, for any suite and night; empty: all folders
  std::vector<MetricName> metrics{};
  int nights = 0;  // the newest sessions of the suite; 0: all of them
};

/// Returns runs, the newest session first, and within a session by case, attempt and role.
std::vector<StoredRun> find_runs(Database& database, const RunFilter& filter);

/// The values of one metric of one case over nights, oldest first.
struct Series {
  std::string case_name;
  MetricName metric;
  std::string hardware;  // of these nights
  int cores = 0;
  std::vector<Night> nights{};
};

/// Limits for the series that are found.
struct SeriesFilter {
  std::string suite{};                 // empty: all suites
  std::string config{};                // pattern as in RunFilter
  std::string case_name{};             // pattern as in RunFilter
  std::optional<MetricName> metric{};  // empty: all metrics of whole runs and final values
  int nights = 0;                      // the newest sessions of the suite; 0: all of them
};

/// Returns the series by case and metric. A night has the values of all runs of role "main" that completed, whether or
/// not their expectations were met. It also has the values of split "case" of runs of any role, since the run that
/// completes a comparison has its result. Only the nights on the hardware of the newest night count, since others
/// cannot be compared.
std::vector<Series> find_series(Database& database, const SeriesFilter& filter);

/// Returns one series, which is empty if no run has such a value. `metric` is read by parse_metric().
std::vector<Night> series(Database& database, const std::string& case_name, const std::string& metric);

}  // namespace phalanx::history
