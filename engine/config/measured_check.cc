// SPDX-License-Identifier: Apache-2.0
#include "engine/config/measured_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Collects the expected metrics that a run does not measure.
class MissingMetrics {
 public:
  explicit MissingMetrics(const MeasuredMetrics& measured) : measured_(measured) {}

  void check(const std::string& section, const SplitBounds& bounds) {
    for (const auto& [split, metrics] : {std::pair("train", &bounds.train), std::pair("validation", &bounds.validation),
                                         std::pair("test", &bounds.test)}) {
      if (!metrics->empty()) check_split(section + "." + split, split);
      for (const auto& [metric, unused] : *metrics) check(section + "." + split + "." + metric, split, metric);
    }
  }

  void check_split(const std::string& key, const std::string& split) {
    if (split == "validation" && !measured_.has_validation) {
      refuse(key, "there is no validation split; set evaluate.validation");
    }
  }

  void check(const std::string& key, const std::string& split, const std::string& metric) {
    const Metrics& known = split == "train" ? measured_.train : measured_.evaluation;
    if (std::ranges::count(known, metric, &Metrics::value_type::first) > 0) return;
    std::vector<std::string> names;
    for (const auto& [name, unused] : known) names.push_back(name);
    const std::string meters = split == "train" ? "watch.meters" : "evaluate.meters";
    refuse(key, "none of " + meters + " measures \"" + metric + "\"; they measure: " + join(names, ", "));
  }

  void throw_if_any() {
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
  }

 private:
  void refuse(const std::string& key, const std::string& message) {
    problems_.push_back({.origin = "config", .key = key, .message = message, .suggestion = {}});
  }

  const MeasuredMetrics& measured_;
  std::vector<ConfigProblem> problems_;
};

}  // namespace

void check_measured(const ExpectConfig& expect, const MeasuredMetrics& measured) {
  MissingMetrics missing(measured);
  missing.check("expect", expect);
  for (const auto& [epoch, bounds] : expect.epochs) missing.check("expect.epochs." + epoch, bounds);
  for (std::size_t i = 0; i < expect.reach.size(); ++i) {
    const std::string key = "expect.reach[" + std::to_string(i) + "]";
    missing.check_split(key, expect.reach[i].split);
    missing.check(key, expect.reach[i].split, expect.reach[i].metric);
  }
  missing.throw_if_any();
}

}  // namespace phalanx
