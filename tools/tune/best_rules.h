// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/collectives/selection/rule.h"
#include "tools/bench/measure.h"

namespace phalanx::tune {

/// The rules by which each operation takes the way that was fastest at its size. `rows`: of one backend, memory and
/// number of ranks, which the rules are for.
///
/// Ways that differ by less than 5 % are alike: then the one of the next smaller size is kept, or else native taken, so
/// that noise makes no rules. Between two measured sizes the way changes at their geometric mean; that of the largest
/// also serves what is larger. What ends in native needs no rule for that.
std::vector<SelectionRule> best_rules(const std::vector<bench::Row>& rows);

}  // namespace phalanx::tune
