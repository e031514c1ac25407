// SPDX-License-Identifier: Apache-2.0
// Warm-up, stable, decay (Hu et al.: MiniCPM, 2024): constant until the last part of the run, so that a run can be
// extended from any checkpoint of its constant part. The shape 1-sqrt is from Haegele et al. (Scaling Laws and
// Compute-Optimal Training Beyond Fixed Training Durations, 2024).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct WsdConfig {
  std::int64_t warmup_steps = 0;
  double decay = 0.2;
  std::string shape = "linear";
  double final_factor = 0;

  template <class V>
  void visit(V& v) {
    v("warmup_steps", warmup_steps, "steps of linear warm-up from 0 to 1", config::at_least(0));
    v("decay", decay, "fraction of the run, at its end, in which the factor decays", config::between(0, 1));
    v("shape", shape, "shape of the decay", config::one_of({"linear", "cosine", "1-sqrt"}));
    v("final_factor", final_factor, "factor after the last step", config::between(0, 1));
  }
};

class Wsd final : public Schedule {
 public:
  explicit Wsd(const WsdConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    const auto now = static_cast<double>(step), end = static_cast<double>(steps);
    if (step < config_.warmup_steps) return (now + 1) / static_cast<double>(config_.warmup_steps);
    const double falling = std::min(std::round(config_.decay * end), end - static_cast<double>(config_.warmup_steps));
    const double fallen = now - (end - falling);  // number of steps
    if (fallen <= 0 && step < steps) return 1;
    const double share = fallen < falling ? fallen / falling : 1;
    return config_.final_factor + (1 - config_.final_factor) * left(share);
  }

 private:
  double left(double share) const {
    if (config_.shape == "cosine") return (1 + std::cos(std::numbers::pi * share)) / 2;
    return 1 - (config_.shape == "linear" ? share : std::sqrt(share));
  }

  WsdConfig config_;
};

const bool wsd_registered =
    Schedules::global().add<WsdConfig>("wsd", "warm-up, stable phase, then decay at the end",
                                       [](const WsdConfig& config) { return std::make_unique<Wsd>(config); });

}  // namespace
}  // namespace phalanx
