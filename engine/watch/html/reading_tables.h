// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/watch/html/run_record.h"

namespace phalanx {

/// A matrix that a meter reads, such as confusion, as one table for each split that was tested: rows are true classes,
/// columns predicted ones, and a cell is the darker the larger its share of its row. The last ones of the run; empty
/// without any. Of more than kMostClasses there is only a word.
std::string to_matrices(const RunRecord& run);
inline constexpr std::size_t kMostClasses = 40;

/// Lists that meters read, such as the recall of each class, and readings from number `charts` on that stand alone: as
/// tables of their last values by split, folded. Empty without any.
std::string to_folded_lists(const RunRecord& run, std::size_t charts);

}  // namespace phalanx
