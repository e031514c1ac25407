// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

using DatasetParts = std::vector<std::shared_ptr<const Dataset>>;

/// Returns the samples of all `parts`, concatenated. Each part draws its random changes from its own seed. The number
/// of classes is the largest one of the parts. Throws ConfigError, which names the config key `key`, if there are no
/// parts or if their samples differ in task or in tensors.
std::shared_ptr<const Dataset> join_parts(DatasetParts parts, const std::string& key);

/// Returns `samples` samples drawn from all parts in proportion to `weights`, each part's with replacement. The draws
/// depend on the seed passed to gather(), so they change in every epoch. Throws the errors of join_parts().
std::shared_ptr<const Dataset> mix_parts(DatasetParts parts, std::vector<double> weights, std::int64_t samples,
                                         const std::string& key);

}  // namespace phalanx
