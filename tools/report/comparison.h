// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/watch/html/run_record.h"

namespace phalanx {

/// Rows of a table, of which the first is its head: what is compared, and a column for each run.
using Rows = std::vector<std::vector<std::string>>;

/// What runs reached and how fast; where a run has no such number its cell is empty.
Rows compare_figures(const std::vector<RunRecord>& runs);

/// Mean time of a step by phase, the whole, and the run's straggler; runs that have not ended have none.
Rows compare_step_time(const std::vector<RunRecord>& runs);

/// The keys of configs whose values differ between runs. Nothing but a head where none does. Throws DataError for a
/// config.yaml that is malformed.
Rows compare_configs(const std::vector<RunRecord>& runs);

/// Names for the columns: those of the runs' folders, with as much of their paths as tells them apart.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs);

/// For terminals: columns aligned, long cells cut, a title above.
std::string to_text(const std::string& title, const Rows& rows);

}  // namespace phalanx
