// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/collectives/selection/rule.h"
#include "framework/collectives/selection/tuned_file.h"

namespace phalanx {

/// Returns the rules by which each operation uses the algorithm that was fastest at its size, on the groups and for the
/// tensors that were measured. `rows`: measurements with one backend.
///
/// Algorithms that differ by less than 5 % are considered equal: then the algorithm of the next smaller size is kept,
/// or else native is used, so that noise makes no rules. Between two measured sizes the algorithm changes at their
/// geometric mean; the algorithm of the largest size is also used for larger ones. The last rule is omitted if it is
/// native.
std::vector<SelectionRule> best_rules(const std::vector<Measured>& rows);

}  // namespace phalanx
