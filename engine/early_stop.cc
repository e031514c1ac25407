// SPDX-License-Identifier: Apache-2.0
#include "engine/early_stop.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "framework/base/error.h"

namespace phalanx {

void EarlyStop::check(const Metrics& measured) const {
  if (!enabled() || std::ranges::count(measured, config_.metric, &Metrics::value_type::first) > 0) return;
  throw ConfigError("train.early_stop.metric is \"" + config_.metric +
                    "\", but no meter in evaluate.meters measures it; add the meter, or name another metric");
}

void EarlyStop::observe(std::int64_t step, const Metrics& metrics) {
  if (!enabled() || stopped_) return;
  const auto found = std::ranges::find(metrics, config_.metric, &Metrics::value_type::first);
  if (found == metrics.end()) check(metrics);
  if (better(found->second)) {
    seen_ = true;
    best_ = found->second;
    best_step_ = step;
    bad_ = 0;
  } else {
    ++bad_;
  }
  stopped_ = bad_ > config_.patience;
}

bool EarlyStop::better(double metric) const {
  if (std::isnan(metric)) return false;
  if (!seen_) return true;
  return config_.best == "lowest" ? metric < best_ - config_.min_delta : metric > best_ + config_.min_delta;
}

std::string EarlyStop::reason() const {
  if (!stopped_) return "";
  std::ostringstream text;
  if (seen_) {
    text << config_.metric << " was " << best_ << " at step " << best_step_ << ", and no better in " << bad_
         << " tests since";
  } else {
    text << config_.metric << " was not a number in " << bad_ << " tests";
  }
  return text.str();
}

std::vector<double> EarlyStop::state() const {
  return {seen_ ? 1.0 : 0.0, best_, static_cast<double>(best_step_), static_cast<double>(bad_), stopped_ ? 1.0 : 0.0};
}

// If the checkpoint's run had no early stopping, watching starts now. If it has stopped with a shorter patience than
// the config's, the run continues.
void EarlyStop::load(const std::vector<double>& state) {
  if (state.empty()) return;
  if (state.size() != this->state().size()) {
    throw DataError("the state of early stopping has 5 numbers, but the checkpoint has " +
                    std::to_string(state.size()));
  }
  seen_ = state[0] != 0;
  best_ = state[1];
  best_step_ = static_cast<std::int64_t>(state[2]);
  bad_ = static_cast<std::int64_t>(state[3]);
  stopped_ = enabled() && state[4] != 0 && bad_ > config_.patience;
}

}  // namespace phalanx
