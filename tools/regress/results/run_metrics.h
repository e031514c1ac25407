// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/history/records.h"

namespace phalanx::regress {

/// The metrics of one line of metrics.jsonl by name, without those that depend on the clock. A null is NaN.
using LineMetrics = std::map<std::string, double>;

/// The lines of metrics.jsonl by split and step, with the epoch of each. An incomplete last line is skipped.
struct MetricsLine {
  std::int64_t epoch = 0;
  LineMetrics metrics{};
};
using MetricsLines = std::map<std::pair<std::string, std::int64_t>, MetricsLine>;

/// Reads metrics.jsonl of a run folder. A file that does not exist has no lines. Throws DataError for a malformed one.
MetricsLines read_lines(const std::string& run_folder);

/// Reads the results of a run from its folder: the metrics at its end and at the end of each epoch, and the
/// expectations that it has checked. Without a summary.json, the run has no results. Sets neither the exit status nor
/// the seconds that the process took. Throws DataError for malformed files.
history::RunResult read_result(const std::string& run_folder);

/// Returns the files of a run folder that a reader may want, relative to `base`: logs, metrics, summary and report.
std::vector<history::Artefact> list_artefacts(const std::string& run_folder, const std::string& base);

/// Returns the value of a metric of the whole run, or NaN if it is missing.
double value_of(const history::RunResult& result, const history::MetricName& metric);

}  // namespace phalanx::regress
