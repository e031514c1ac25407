// SPDX-License-Identifier: Apache-2.0
// Linear warm-up, then half a cosine (Loshchilov, Hutter: SGDR, 2017, without restarts).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct CosineConfig {
  std::int64_t warmup_steps = 0;
  double final_factor = 0;

  template <class V>
  void visit(V& v) {
    v("warmup_steps", warmup_steps, "steps of linear warm-up from 0 to 1", config::at_least(0));
    v("final_factor", final_factor, "factor after the last step", config::between(0, 1));
  }
};

class Cosine final : public Schedule {
 public:
  explicit Cosine(const CosineConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    if (step < config_.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(config_.warmup_steps);
    const auto falling = std::max<std::int64_t>(1, steps - config_.warmup_steps);
    const double share = std::min(1.0, static_cast<double>(step - config_.warmup_steps) / static_cast<double>(falling));
    return config_.final_factor + (1 - config_.final_factor) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }

 private:
  CosineConfig config_;
};

const bool cosine_registered =
    Schedules::global().add<CosineConfig>("cosine", "linear warm-up, then cosine decay",
                                          [](const CosineConfig& config) { return std::make_unique<Cosine>(config); });

}  // namespace
}  // namespace phalanx
