// SPDX-License-Identifier: Apache-2.0
// Changes linearly from one factor to another, like torch's LinearLR: rising, it is a warm-up, and falling, a decay.
#include <algorithm>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct LinearConfig {
  double from = 1;
  double to = 0;
  std::int64_t over = 0;

  template <class V>
  void visit(V& v) {
    v("from", from, "factor at the first step", config::between(0, 1));
    v("to", to, "final factor", config::between(0, 1));
    v("over", over, "steps to get there; 0: the whole run", config::at_least(0));
  }
};

class Linear final : public Schedule {
 public:
  explicit Linear(const LinearConfig& config) : config_(config) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    const auto over = config_.over > 0 ? config_.over : steps;
    if (step >= over) return config_.to;
    return config_.from + (config_.to - config_.from) * static_cast<double>(step) / static_cast<double>(over);
  }

 private:
  LinearConfig config_;
};

const bool linear_registered =
    Schedules::global().add<LinearConfig>("linear", "linear change from one factor to another",
                                          [](const LinearConfig& config) { return std::make_unique<Linear>(config); });

}  // namespace
}  // namespace phalanx
