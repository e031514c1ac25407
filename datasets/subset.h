// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

/// Returns a dataset of some samples of another one: sample i is its sample indices[i], with that sample's random
/// changes. Throws std::invalid_argument if `indices` is empty or an index is out of range.
std::shared_ptr<const Dataset> make_subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices);

/// Returns the splits with a part of the training samples as validation split: a fraction `share` of them, rounded to a
/// whole number of samples. Which ones depends only on `seed`, and they are read without random changes. The remaining
/// training samples keep their order. Throws ConfigError, which names evaluate.validation, if there is a validation
/// split already, if samples overlap, or if one of the two splits would be empty.
Splits hold_out(const Splits& splits, double share, std::int64_t seed);

}  // namespace phalanx
