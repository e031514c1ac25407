// SPDX-License-Identifier: Apache-2.0
// Decreases by a constant factor with every step, like torch's ExponentialLR.
#include <cmath>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct ExponentialConfig {
  double gamma = 0.999;

  template <class V>
  void visit(V& v) {
    v("gamma", gamma, "factor of every step", config::above(0));
  }
};

class Exponential final : public Schedule {
 public:
  explicit Exponential(const ExponentialConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t) const override {
    return std::pow(config_.gamma, static_cast<double>(step));
  }

 private:
  ExponentialConfig config_;
};

const bool exponential_registered = Schedules::global().add<ExponentialConfig>(
    "exponential", "multiplied by gamma in every step",
    [](const ExponentialConfig& config) { return std::make_unique<Exponential>(config); });

}  // namespace
}  // namespace phalanx
