// SPDX-License-Identifier: Apache-2.0
// Decreases by a constant factor at given steps, like torch's MultiStepLR.
#include <algorithm>
#include <cmath>

#include "engine/schedule/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct MultiStepConfig {
  std::vector<std::int64_t> at;
  double gamma = 0.1;

  template <class V>
  void visit(V& v) {
    v("at", at, "steps at which the factor drops, in increasing order", config::at_least(1));
    v("gamma", gamma, "factor of each drop", config::above(0));
  }
};

class MultiStep final : public Schedule {
 public:
  explicit MultiStep(const MultiStepConfig& config) : config_(config) {
    if (config.at.empty()) throw ConfigError("multi_step needs its steps: {name: multi_step, at: [1000, 2000]}");
    if (!std::ranges::is_sorted(config.at)) throw ConfigError("the steps of multi_step's `at` must be in order");
  }

  double factor(std::int64_t step, std::int64_t) const override {
    const auto falls = std::ranges::upper_bound(config_.at, step) - config_.at.begin();
    return std::pow(config_.gamma, static_cast<double>(falls));
  }

 private:
  MultiStepConfig config_;
};

const bool multi_step_registered = Schedules::global().add<MultiStepConfig>(
    "multi_step", "multiplied by gamma at given steps",
    [](const MultiStepConfig& config) { return std::make_unique<MultiStep>(config); });

}  // namespace
}  // namespace phalanx
