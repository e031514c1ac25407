// SPDX-License-Identifier: Apache-2.0
// Decreases by a constant factor every `every` steps, like torch's StepLR.
#include <cmath>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct StepConfig {
  std::int64_t every = 1000;
  double gamma = 0.1;

  template <class V>
  void visit(V& v) {
    v("every", every, "steps between drops", config::at_least(1));
    v("gamma", gamma, "factor of each drop", config::above(0));
  }
};

class StepSchedule final : public Schedule {
 public:
  explicit StepSchedule(const StepConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t) const override {
    return std::pow(config_.gamma, static_cast<double>(step / config_.every));
  }

 private:
  StepConfig config_;
};

const bool step_registered = Schedules::global().add<StepConfig>(
    "step", "multiplied by gamma every n steps",
    [](const StepConfig& config) { return std::make_unique<StepSchedule>(config); });

}  // namespace
}  // namespace phalanx
