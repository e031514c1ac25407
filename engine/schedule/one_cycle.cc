// SPDX-License-Identifier: Apache-2.0
// Rises to the optimizer's learning rate and decays far below the start, once (Smith, Topin: Super-Convergence, 2018),
// with the steps and the cosine of torch's OneCycleLR. The paper also lowers the momentum while the rate rises; this
// schedule does not change the momentum, like torch with cycle_momentum=False.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct OneCycleConfig {
  double rise = 0.3;
  double divide_by = 25;
  double final_divide_by = 1e4;
  std::string shape = "cosine";

  template <class V>
  void visit(V& v) {
    v("rise", rise, "fraction of the run in which the factor rises to 1", config::between(0, 1));
    v("divide_by", divide_by, "the first factor is 1 / this", config::at_least(1));
    v("final_divide_by", final_divide_by, "the last factor is the first / this", config::at_least(1));
    v("shape", shape, "shape of rise and decay", config::one_of({"cosine", "linear"}));
  }
};

class OneCycle final : public Schedule {
 public:
  explicit OneCycle(const OneCycleConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    const double first = 1 / config_.divide_by, last = first / config_.final_divide_by;
    const double end = static_cast<double>(steps - 1), now = std::min(static_cast<double>(step), end);
    // The step at which the factor is 1. As in torch, it is before the first step if the rise is shorter than a step.
    const double top = config_.rise * static_cast<double>(steps) - 1;
    if (now < top) return between(first, 1, now / top);
    return top < end && steps > 1 ? between(1, last, (now - top) / (end - top)) : 1;
  }

 private:
  double between(double from, double to, double share) const {
    if (config_.shape == "linear") return from + (to - from) * share;
    return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }

  OneCycleConfig config_;
};

const bool one_cycle_registered = Schedules::global().add<OneCycleConfig>(
    "one_cycle", "rise to the learning rate, then decay far below the start; momentum unchanged",
    [](const OneCycleConfig& config) { return std::make_unique<OneCycle>(config); });

}  // namespace
}  // namespace phalanx
