// SPDX-License-Identifier: Apache-2.0
// Decreases when a test metric stops improving, like torch's ReduceLROnPlateau.
//
// A test is an improvement if it is better than the best one so far by more than `threshold`; NaN never is. After more
// than `patience` tests in a row without improvement, the factor is multiplied by `gamma`, and the next `cooldown`
// tests do not count.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/schedule/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct PlateauConfig {
  std::string metric = "loss";
  std::string best = "lowest";
  double gamma = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_is = "relative";
  std::int64_t cooldown = 0;
  double least_factor = 0;

  template <class V>
  void visit(V& v) {
    v("metric", metric, "test metric to watch; must be among evaluate.meters");
    v("best", best, "whether its lowest or highest value is best", config::one_of({"lowest", "highest"}));
    v("gamma", gamma, "factor of each drop", config::between(0, 1));
    v("patience", patience, "consecutive tests without improvement to tolerate", config::at_least(0));
    v("threshold", threshold, "minimum change that counts as an improvement", config::at_least(0));
    v("threshold_is", threshold_is, "how threshold is measured: relative to the best value, or in its unit",
      config::one_of({"relative", "absolute"}));
    v("cooldown", cooldown, "tests to ignore after a drop", config::at_least(0));
    v("least_factor", least_factor, "lower limit of the factor", config::between(0, 1));
  }
};

class Plateau final : public Schedule {
 public:
  explicit Plateau(const PlateauConfig& config) : config_(config) {
    if (config.gamma >= 1) throw ConfigError("plateau multiplies by gamma, which must be below 1");
    best_ = (lowest() ? 1 : -1) * std::numeric_limits<double>::infinity();
  }

  double factor(std::int64_t, std::int64_t) const override { return factor_; }
  std::vector<std::string> monitored_metrics() const override { return {config_.metric}; }

  void observe(std::int64_t, const Metrics& metrics) override {
    const auto metric = std::ranges::find(metrics, config_.metric, &Metrics::value_type::first);
    if (metric == metrics.end()) {
      throw ConfigError("plateau watches \"" + config_.metric +
                        "\", but no meter in evaluate.meters measures it; add the meter");
    }
    count(metric->second);
  }

  std::vector<double> state() const override {
    return {factor_, best_, static_cast<double>(bad_), static_cast<double>(cooling_)};
  }

  void load(const std::vector<double>& saved) override {
    if (saved.size() != state().size()) {
      throw DataError("the state of plateau has 4 numbers, but the checkpoint has " + std::to_string(saved.size()) +
                      ": it belongs to a run with another schedule");
    }
    factor_ = saved[0];
    best_ = saved[1];
    bad_ = static_cast<std::int64_t>(saved[2]);
    cooling_ = static_cast<std::int64_t>(saved[3]);
  }

 private:
  bool lowest() const { return config_.best == "lowest"; }

  bool better(double metric) const {
    const double sign = lowest() ? -1 : 1;
    if (std::isinf(best_)) return sign * metric > sign * best_;
    if (config_.threshold_is == "absolute") return sign * metric > sign * best_ + config_.threshold;
    return sign * metric > sign * best_ * (1 + sign * config_.threshold);
  }

  void count(double metric) {
    if (better(metric)) {
      best_ = metric;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_ = 0;
    }
    if (bad_ <= config_.patience) return;
    factor_ = std::max(factor_ * config_.gamma, config_.least_factor);
    cooling_ = config_.cooldown;
    bad_ = 0;
  }

  PlateauConfig config_;
  double factor_ = 1;
  double best_;
  std::int64_t bad_ = 0;      // consecutive tests without improvement
  std::int64_t cooling_ = 0;  // upcoming tests that do not count
};

const bool plateau_registered = Schedules::global().add<PlateauConfig>(
    "plateau", "multiplied by gamma when a test metric stops improving",
    [](const PlateauConfig& config) { return std::make_unique<Plateau>(config); });

}  // namespace
}  // namespace phalanx
