// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/html/run_record.h"

namespace phalanx {

/// Rows of a table. The first row is the head: the subject of the comparison, and a column for each run.
using Rows = std::vector<std::vector<std::string>>;

/// Compares the results and the speed of runs; a cell is empty if the run does not have the value.
Rows compare_key_metrics(const std::vector<RunRecord>& runs);

/// Compares the mean time of a step, by phase and in total, and the stragglers. Runs that have not ended have no
/// values.
Rows compare_step_time(const std::vector<RunRecord>& runs);

/// Compares configs: returns the keys whose values differ between runs, or only the head if none does. Throws DataError
/// for a malformed config.yaml.
Rows compare_configs(const std::vector<RunRecord>& runs);

/// Returns the values of a run's config by key path, in their order: {{"optimizer.lr", "0.02"}, ...}. Throws DataError
/// for a malformed config.yaml.
std::vector<std::pair<std::string, std::string>> flatten_config(const RunRecord& run);

/// Returns names for the columns: the names of the runs' folders, with as much of their paths as makes them distinct.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs);

/// Returns a text for a terminal: a title, aligned columns, long cells cut.
std::string to_text(const std::string& title, const Rows& rows);

}  // namespace phalanx
