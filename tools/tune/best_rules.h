// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/collectives/selection/rule.h"
#include "tools/bench/measure.h"

namespace phalanx::tune {

/// Returns the rules by which each operation uses the algorithm that was fastest at its size. `rows`: measurements with
/// one backend, memory and number of ranks, for which the rules are valid.
///
/// Algorithms that differ by less than 5 % are considered equal: then the algorithm of the next smaller size is kept,
/// or else native is used, so that noise makes no rules. Between two measured sizes the algorithm changes at their
/// geometric mean; the algorithm of the largest size is also used for larger ones. The last rule is omitted if it is
/// native.
std::vector<SelectionRule> best_rules(const std::vector<bench::Row>& rows);

}  // namespace phalanx::tune
