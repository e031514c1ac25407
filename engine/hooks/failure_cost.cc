// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/failure_cost.h"

#include <algorithm>
#include <cstdint>

#include "engine/hooks/restarts.h"

namespace phalanx {

FailureCost failure_cost(const Recovery* recovery, std::chrono::steady_clock::time_point started) {
  FailureCost cost{.seconds = restarts_of_job().lost_seconds};
  if (recovery != nullptr) {
    cost.ranks = static_cast<std::int64_t>(recovery->lost.size());
    cost.returned = static_cast<std::int64_t>(recovery->returned.size());
    cost.seconds += recovery->lost_seconds;
  }
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - started;
  if (all.count() > 0) cost.goodput = std::clamp(1 - cost.seconds / all.count(), 0.0, 1.0);
  return cost;
}

}  // namespace phalanx
