// SPDX-License-Identifier: Apache-2.0
// Computes (1 - step / over)^power, like torch's PolynomialLR.
#include <cmath>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct PolynomialConfig {
  double power = 1;
  std::int64_t over = 0;
  double final_factor = 0;

  template <class V>
  void visit(V& v) {
    v("power", power, "exponent; 1: linear decay, above 1: steeper at first", config::above(0));
    v("over", over, "steps of the decay; 0: the whole run", config::at_least(0));
    v("final_factor", final_factor, "factor after the decay", config::between(0, 1));
  }
};

class Polynomial final : public Schedule {
 public:
  explicit Polynomial(const PolynomialConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    const auto over = config_.over > 0 ? config_.over : steps;
    if (step >= over) return config_.final_factor;
    const double left = 1 - static_cast<double>(step) / static_cast<double>(over);
    return config_.final_factor + (1 - config_.final_factor) * std::pow(left, config_.power);
  }

 private:
  PolynomialConfig config_;
};

const bool polynomial_registered = Schedules::global().add<PolynomialConfig>(
    "polynomial", "polynomial decay",
    [](const PolynomialConfig& config) { return std::make_unique<Polynomial>(config); });

}  // namespace
}  // namespace phalanx
