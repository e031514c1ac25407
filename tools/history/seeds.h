// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tools/history/queries.h"

namespace phalanx::history {

/// Replaces the learning results (losses, accuracies and the like, not speed or memory) of cases that differ only in
/// their seed by one series of their mean. A seed has luck, which a change of the code may move in either direction;
/// the mean of several seeds has less.
///
/// The name of the mean is "spirals_mlp-whole over 3 seeds". It has the nights in which all these cases have a value;
/// each night has one value, the mean of the medians of the cases. Other series stay as they are.
std::vector<Series> average_over_seeds(std::vector<Series> all);

}  // namespace phalanx::history
