// SPDX-License-Identifier: Apache-2.0
#include "engine/config/expectation.h"

#include <algorithm>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

const double* find(const Metrics& metrics, const std::string& metric) {
  const auto found = std::ranges::find(metrics, metric, &Metrics::value_type::first);
  return found == metrics.end() ? nullptr : &found->second;
}

}  // namespace

void check_measured(const ExpectedMetrics& expected, const Metrics& metrics, const std::string& split) {
  for (const auto& [metric, bounds] : expected) {
    if (find(metrics, metric) != nullptr) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    const std::string meters = split == "train" ? "watch.meters" : "evaluate.meters";
    throw ConfigError("expect." + split + "." + metric + ": none of " + meters + " measures \"" + metric +
                      "\"; they measure: " + join(names, ", "));
  }
}

void check_expected(const ExpectedMetrics& expected, const Metrics& metrics, const std::string& split) {
  for (const auto& [metric, bounds] : expected) {
    const double* value = find(metrics, metric);
    if (value == nullptr) throw Error("expect." + split + "." + metric + ": the run has not measured it");
    const auto fail = [&](const char* bound, double limit, const char* most) {
      throw Error("the " + split + " " + metric + " is " + format_text("%.6g", *value) + ", but expect." + split + "." +
                  metric + "." + bound + " asks for " + format_text("%.6g", limit) + " at " + most);
    };
    if (bounds.min && !(*value >= *bounds.min)) fail("min", *bounds.min, "least");
    if (bounds.max && !(*value <= *bounds.max)) fail("max", *bounds.max, "most");
  }
}

}  // namespace phalanx
