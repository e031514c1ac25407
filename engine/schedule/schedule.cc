#include "engine/schedule/schedule.h"

#include "framework/base/error.h"

namespace phalanx {

void Schedule::load(const std::vector<double>& saved) {
  if (saved.empty()) return;
  throw DataError("a schedule without a state got one of " + std::to_string(saved.size()) +
                  " numbers: the checkpoint is of a run with another schedule");
}

}  // namespace phalanx
