// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/options.h"

#include <algorithm>

namespace phalanx::bench {

bool Options::uses(const std::string& subject) const {
  const auto among = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, subject) != names.end();
  };
  return among(backends) || among(against);
}

}  // namespace phalanx::bench
