// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace phalanx {

/// The longest time to wait before a process is started again, unless the first one is longer. A process that has run
/// for this time was not started in vain: starts that are so far apart need no longer pause.
inline constexpr std::chrono::seconds kLongestBackoff{60};

/// Returns the time to wait before a job or a process is started again: `first` seconds, doubled for each of the `vain`
/// starts before, up to kLongestBackoff, or `first` if that is longer.
inline std::chrono::duration<double> backoff(double first, std::int64_t vain) {
  constexpr std::int64_t kEnough = 40;  // more would only overflow
  const double doubled = std::ldexp(first, static_cast<int>(std::min(vain, kEnough)));
  return std::chrono::duration<double>(std::min(doubled, std::max<double>(kLongestBackoff.count(), first)));
}

}  // namespace phalanx
