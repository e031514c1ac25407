// SPDX-License-Identifier: Apache-2.0
#include "framework/base/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace phalanx {

double quantile(std::span<const double> values, double q) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

}  // namespace phalanx
