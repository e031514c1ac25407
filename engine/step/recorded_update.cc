// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recorded_update.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {

bool RecordedUpdate::can_be_recorded() {
  const std::string why = optimizer_.why_not_recorded();
  if (why.empty()) return true;
  if (required_) {
    throw ConfigError(
        "train.cuda_graph: the strategy communicates within backward, and the graph cannot contain the update: " + why +
        "; use strategy: all_reduce, or remove train.cuda_graph");
  }
  if (!std::exchange(said_why_not_, true)) log_graph_without_update(why);
  return false;
}

// A border between phases of the step within the graph would be an event that no host can read.
void RecordedUpdate::record() {
  const StepClock::Pause no_laps(clock_);
  strategy_.before_update(0);  // a strategy with StrategyTraits::in_graph does the same in every step
  optimizer_.record(std::nullopt);
}

void log_graph_without_update(const std::string& why) {
  log_info() << "train.cuda_graph: the graph ends with backward, and the update is launched after it: " << why;
}

}  // namespace phalanx
