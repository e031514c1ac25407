// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/html/run_record.h"

namespace phalanx {

/// Returns the last values of matrices that meters read, such as confusion, as one table for each tested split. Rows
/// are true classes and columns are predicted ones. A cell is darker, the larger its share of its row. Empty if there
/// are no matrices. If a matrix has more than kMaxClasses classes, there is only a note.
std::string to_matrices(const RunRecord& run);
inline constexpr std::size_t kMaxClasses = 40;

/// Returns folded tables of the last values by split, of lists that meters read, such as the recall of each class, and
/// of all scalar metrics from number `charts` on; empty if there are no such metrics.
std::string to_folded_lists(const RunRecord& run, std::size_t charts);

}  // namespace phalanx
