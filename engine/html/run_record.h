// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/html/run_summary.h"
#include "engine/run_folder.h"
#include "framework/observe/hang/picture.h"

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
  std::optional<JobPicture> hang{};       // logs/hang.json; absent: it has never stood still
  bool moved_on = false;                  // metrics.jsonl was written after `hang` was taken
};

/// Reads the folder of a run. Throws DataError if `folder` is not a run folder: it has neither metrics.jsonl nor
/// logs/hang.json, which a run may have that stood still before its first metrics. The error names the missing or
/// malformed file, and the line if metrics are malformed.
RunRecord read_run(const RunFolder& folder);

}  // namespace phalanx
