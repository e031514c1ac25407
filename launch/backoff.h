// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace phalanx {

/// Returns the time to wait before a job or a process is started again: `first` seconds, doubled for each of the `vain`
/// starts before, up to a minute, or `first` if that is longer.
inline std::chrono::duration<double> backoff(double first, std::int64_t vain) {
  constexpr double kLongest = 60;
  constexpr std::int64_t kEnough = 40;  // more would only overflow
  const double doubled = std::ldexp(first, static_cast<int>(std::min(vain, kEnough)));
  return std::chrono::duration<double>(std::min(doubled, std::max(kLongest, first)));
}

}  // namespace phalanx
