// SPDX-License-Identifier: Apache-2.0
// Runs schedules one after the other. Each counts its own steps from 0 and treats its part as the whole run.
#include <algorithm>
#include <utility>

#include "engine/schedule/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct PartConfig {
  Schedules::Choice schedule{"constant"};
  std::int64_t steps = 0;

  template <class V>
  void visit(V& v) {
    v("schedule", schedule, "schedule of this part");
    v("steps", steps, "length of this part; 0: the rest of the run, for the last part only", config::at_least(0));
  }
};

struct ChainedConfig {
  std::vector<PartConfig> parts;

  template <class V>
  void visit(V& v) {
    v("parts", parts, "schedules in order; the last one keeps its final factor");
  }
};

class Chained final : public Schedule {
 public:
  explicit Chained(const ChainedConfig& config) {
    if (config.parts.empty()) throw ConfigError("chained needs parts: [{schedule: linear, steps: 100}, ...]");
    for (const auto& part : config.parts) {
      if (part.steps == 0 && &part != &config.parts.back()) {
        throw ConfigError("a part of chained takes the rest of the run (steps: 0), but another one follows");
      }
      parts_.push_back({part.schedule.make(), begin_, part.steps});
      begin_ += part.steps;
    }
  }

  double factor(std::int64_t step, std::int64_t steps) const override {
    const Part& part = at(step);
    const auto rest = std::max<std::int64_t>(1, steps - part.begin);
    return part.schedule->factor(step - part.begin, part.steps > 0 ? part.steps : rest);
  }

  std::vector<std::string> monitored_metrics() const override {
    std::vector<std::string> all;
    for (const auto& part : parts_) {
      for (auto& name : part.schedule->monitored_metrics()) all.push_back(std::move(name));
    }
    return all;
  }

  // The metrics go to the part that made the tested updates.
  void observe(std::int64_t step, const Metrics& metrics) override {
    const Part& part = at(std::max<std::int64_t>(0, step - 1));
    part.schedule->observe(step - part.begin, metrics);
  }

  std::vector<double> state() const override {
    std::vector<double> all;
    for (const auto& part : parts_) {
      for (const double number : part.schedule->state()) all.push_back(number);
    }
    return all;
  }

  void load(const std::vector<double>& saved) override {
    if (saved.size() != state().size()) {
      throw DataError("the state of chained has " + std::to_string(state().size()) + " numbers, but the checkpoint " +
                      "has " + std::to_string(saved.size()) + ": it belongs to a run with another schedule");
    }
    auto next = saved.begin();
    for (auto& part : parts_) {
      const auto end = next + static_cast<std::ptrdiff_t>(part.schedule->state().size());
      part.schedule->load({next, end});
      next = end;
    }
  }

 private:
  struct Part {
    std::unique_ptr<Schedule> schedule;
    std::int64_t begin, steps;
  };

  const Part& at(std::int64_t step) const {
    std::size_t i = parts_.size() - 1;
    while (i > 0 && step < parts_[i].begin) --i;
    return parts_[i];
  }

  std::vector<Part> parts_;
  std::int64_t begin_ = 0;  // first step of the part that is added next
};

const bool chained_registered = Schedules::global().add<ChainedConfig>(
    "chained", "several schedules one after the other",
    [](const ChainedConfig& config) { return std::make_unique<Chained>(config); });

}  // namespace
}  // namespace phalanx
