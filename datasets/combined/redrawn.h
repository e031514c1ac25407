// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "framework/base/random.h"

namespace phalanx {

/// Returns the seed for the random draws of a dataset. It differs in each epoch, whose seed is `epoch`, or is always
/// the same if `fixed`. `seed` is the seed of the config.
inline std::uint64_t seed_of_draws(std::int64_t seed, bool fixed, std::uint64_t epoch) {
  const auto own = static_cast<std::uint64_t>(seed);
  return fixed ? mix(own, 0) : mix(mix(own, 1), epoch);
}

/// Wraps each split in a Made(config, split, fixed), which draws again in each epoch for training and once for the
/// other splits.
template <class Made, class Config>
Splits redrawn(const Config& config, Splits splits) {
  splits.train = std::make_shared<const Made>(config, splits.train, /*fixed=*/false);
  splits.test = std::make_shared<const Made>(config, splits.test, /*fixed=*/true);
  if (splits.validation) splits.validation = std::make_shared<const Made>(config, splits.validation, /*fixed=*/true);
  return splits;
}

}  // namespace phalanx
