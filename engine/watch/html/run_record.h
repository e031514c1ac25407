// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/watch/html/run_summary.h"
#include "engine/watch/run_folder.h"

namespace phalanx {

/// A curve over steps; NaN where the run had no finite value.
using Curve = std::vector<std::pair<double, double>>;

/// The data that a run has written to its folder.
struct RunRecord {
  std::string path;
  std::string config;                     // config.yaml
  std::optional<RunSummary> summary;      // summary.json; absent: the run has not ended
  std::vector<std::string> metrics{};     // names, in the order of metrics.jsonl
  std::map<std::string, Curve> curves{};  // by "train/loss", "test/accuracy", "train/learning_rate", ...
  std::map<std::string, Curve> phases{};  // by phase: milliseconds of a step
};

/// Reads the folder of a run. Throws DataError if `folder` is not a run folder. The error names the missing or
/// malformed file, and the line if metrics are malformed.
RunRecord read_run(const RunFolder& folder);

}  // namespace phalanx
