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

/// What a run has left behind, as read from its folder.
struct RunRecord {
  std::string path;
  std::string config;                     // config.yaml
  std::optional<RunSummary> summary;      // summary.json; none where the run has not ended
  std::vector<std::string> readings{};    // names, in the order of metrics.jsonl
  std::map<std::string, Curve> curves{};  // by "train/loss", "test/accuracy", "train/learning_rate", ...
  std::map<std::string, Curve> phases{};  // by phase: milliseconds of a step
};

/// Throws DataError where `folder` is none of a run: it says what is missing, or which file is malformed, of metrics in
/// which line.
RunRecord read_run(const RunFolder& folder);

}  // namespace phalanx
