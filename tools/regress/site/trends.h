// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/regress/site/json_file.h"
#include "tools/regress/site/nights.h"

namespace phalanx::site {

/// The values that the completed main runs of a case have reached, and results of comparisons between its runs, by
/// metric and night: "run/throughput", "test/accuracy", "case/scaling_efficiency".
struct Trends {
  struct Point {
    std::int64_t run;
    double value;
  };
  std::map<std::string, std::map<std::int64_t, std::vector<Point>>> metrics{};  // by metric and Night::id
};

/// Reads the trends of all cases, by CaseHistory::id.
std::map<std::int64_t, Trends> read_trends(SQLite::Database& database, const History& history);

/// A lasting change of a metric from one night to the next.
struct Change {
  std::int64_t case_id = 0;
  std::string metric;
  std::int64_t night = 0;        // the first one with the new level
  double before = 0, after = 0;  // medians
  std::string text;              // "throughput of shakespeare_gpt_tp2 fell 7.0 % between commits ..."
};

/// Finds the changes in the trends of a case, in the last kMaxNights nights.
std::vector<Change> find_changes(const SuiteHistory& suite, const CaseHistory& one, const Trends& trends);
inline constexpr std::size_t kMaxNights = 120;

/// Returns the data of a case's page.
Json case_data(const SuiteHistory& suite, const CaseHistory& one, const Trends& trends,
               const std::vector<Change>& changes);

Json change_data(const Change& change);

}  // namespace phalanx::site
