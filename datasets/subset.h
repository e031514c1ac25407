// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

/// Some samples of another dataset: sample i is its sample indices[i]. Changes at random are those of that sample.
/// Throws std::invalid_argument where there is no index, or one that is no sample.
std::shared_ptr<const Dataset> make_subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices);

/// The splits with a part of the training samples as validation split: `share` of them, rounded, which are drawn by
/// `seed` alone and read without changes at random. What is left keeps its order. Throws ConfigError, naming
/// evaluate.validation, where there is a validation split already, where samples overlap, or where one of the
/// two would be empty.
Splits hold_out(const Splits& splits, double share, std::int64_t seed);

}  // namespace phalanx
