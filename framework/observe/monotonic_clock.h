// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace phalanx {

/// Returns the nanoseconds of CLOCK_MONOTONIC. All processes of a host share this clock, and it is never adjusted.
inline std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace phalanx
