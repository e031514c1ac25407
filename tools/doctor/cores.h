// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace phalanx::doctor {

/// How far two cores are from each other.
struct CoreLink {
  int first = 0, second = 0;
  double round_trip_ns = 0;  // a cache line there and back, median
};

/// From the first core that this process may use to each other one, at most `most` of them, spread evenly. A few
/// milliseconds each. Empty where there is one core.
std::vector<CoreLink> measure_cores(int most);

/// 10^9 bytes a second that one core copies, buffers larger than its caches.
double measure_copy_gb_s();

}  // namespace phalanx::doctor
