// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/options.h"

#include <algorithm>

namespace phalanx::bench_train {

bool Options::uses(Framework framework) const {
  return std::ranges::any_of(systems, [&](const auto& name) { return find_system(name).framework == framework; });
}

}  // namespace phalanx::bench_train
