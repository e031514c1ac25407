// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

using DatasetParts = std::vector<std::shared_ptr<const Dataset>>;

/// The samples of all `parts`, those of one behind those of the other. Each part draws changes at random of a seed of
/// its own. Throws ConfigError, which names `key` of the config, where there is no part, or where samples differ in
/// their tensors or in what they are for; of numbers of classes the largest counts.
std::shared_ptr<const Dataset> join_parts(DatasetParts parts, const std::string& key);

/// Samples drawn from all parts, in proportion to `weights`, each part's with replacement: which ones depends on the
/// seed that is passed to gather(), so they are others in every epoch. Throws as join_parts().
std::shared_ptr<const Dataset> mix_parts(DatasetParts parts, std::vector<double> weights, std::int64_t samples,
                                         const std::string& key);

}  // namespace phalanx
