// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "framework/base/random.h"

namespace phalanx {

/// The seed of what a dataset draws for its samples: another one in each epoch, whose seed is `epoch`, or always the
/// same. `seed` is the config's.
inline std::uint64_t seed_of_draws(std::int64_t seed, bool fixed, std::uint64_t epoch) {
  const auto own = static_cast<std::uint64_t>(seed);
  return fixed ? mix(own, 0) : mix(mix(own, 1), epoch);
}

/// Each split as a Made(config, split, fixed): drawn anew in each epoch for training, and once for all other splits.
template <class Made, class Config>
Splits redrawn(const Config& config, Splits splits) {
  splits.train = std::make_shared<const Made>(config, splits.train, /*fixed=*/false);
  splits.test = std::make_shared<const Made>(config, splits.test, /*fixed=*/true);
  if (splits.validation) splits.validation = std::make_shared<const Made>(config, splits.validation, /*fixed=*/true);
  return splits;
}

}  // namespace phalanx
