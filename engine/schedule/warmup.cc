// SPDX-License-Identifier: Apache-2.0
// A linear rise that is applied to the first steps of another schedule without shifting that schedule's steps. To put a
// rise before another schedule, use `chained`.
#include <optional>

#include "engine/schedule/schedule.h"

namespace phalanx {
namespace {

struct WarmupConfig {
  std::int64_t over = 100;
  std::optional<double> from;
  Schedules::Choice schedule{"constant"};

  template <class V>
  void visit(V& v) {
    v("over", over, "steps of the warm-up", config::at_least(1));
    v("from", from, "factor of the first step, which rises to 1 at step `over`; unset: (step + 1) / over",
      config::between(0, 1));
    v("schedule", schedule, "schedule that is multiplied by the warm-up factor");
  }
};

class Warmup final : public Schedule {
 public:
  explicit Warmup(const WarmupConfig& config)
      : over_(config.over), from_(config.from), schedule_(config.schedule.make()) {}

  double factor(std::int64_t step, std::int64_t steps) const override {
    return share(step) * schedule_->factor(step, steps);
  }
  std::vector<std::string> monitored_metrics() const override { return schedule_->monitored_metrics(); }
  void observe(std::int64_t step, const Metrics& metrics) override { schedule_->observe(step, metrics); }
  std::vector<double> state() const override { return schedule_->state(); }
  void load(const std::vector<double>& saved) override { schedule_->load(saved); }

 private:
  // Without `from`, the factors are 1/n, 2/n, ..., n/n, as in the warm-up of the cosine. With it, they start at `from`
  // and reach 1 in the step after the rise, as in torch's LinearLR.
  double share(std::int64_t step) const {
    if (step >= over_) return 1;
    const auto over = static_cast<double>(over_);
    if (!from_) return static_cast<double>(step + 1) / over;
    return *from_ + (1 - *from_) * static_cast<double>(step) / over;
  }

  std::int64_t over_;
  std::optional<double> from_;
  std::unique_ptr<Schedule> schedule_;
};

const bool warmup_registered =
    Schedules::global().add<WarmupConfig>("warmup", "linear warm-up on top of another schedule",
                                          [](const WarmupConfig& config) { return std::make_unique<Warmup>(config); });

}  // namespace
}  // namespace phalanx
