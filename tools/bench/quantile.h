// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace phalanx::bench {

/// Returns the sample below which a fraction q of all samples lie; 0.5 is the median. `samples` must not be empty.
inline double quantile(std::vector<double> samples, double q) {
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1) + 0.5)];
}

}  // namespace phalanx::bench
