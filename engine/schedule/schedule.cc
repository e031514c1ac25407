// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include "framework/base/error.h"

namespace phalanx {

void Schedule::load(const std::vector<double>& saved) {
  if (saved.empty()) return;
  throw DataError("a schedule without state was given " + std::to_string(saved.size()) +
                  " numbers: the checkpoint belongs to a run with another schedule");
}

}  // namespace phalanx
