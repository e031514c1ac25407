// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recorded_update.h"

#include <ATen/ops/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {

// Throwing is part of the agreement: a rank that threw alone would leave the others waiting.
Course RecordedUpdate::agree(bool has_graph, bool may_record) {
  const std::string why = optimizer_.why_not_recorded();
  const std::vector<std::int64_t> own{may_record, has_graph, why.empty()};
  const at::Tensor votes = at::tensor(own, at::kLong);
  if (control_ && control_->size() > 1) {
    control_->all_reduce(votes, Reduction::kMin).wait();
    clock_.lap(Phase::kCommunication);
  }
  const auto* const all = votes.const_data_ptr<std::int64_t>();
  if (all[1] == 1) return Course::kReplay;
  if (all[0] == 0) return Course::kLaunch;
  if (all[2] == 1) return Course::kRecord;
  explain_graph_without_update(why.empty() ? "another rank cannot record its update, and says why" : why);
  return Course::kRecordBackward;
}

void RecordedUpdate::explain_graph_without_update(const std::string& why) {
  if (required_) {
    throw ConfigError(
        "train.cuda_graph: the strategy communicates within backward, and the graph cannot contain the update: " + why +
        "; use strategy: all_reduce, or remove train.cuda_graph");
  }
  if (!std::exchange(said_why_not_, true)) log_graph_without_update(why);
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
