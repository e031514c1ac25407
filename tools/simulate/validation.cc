// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/validation.h"

#include <cmath>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "tools/simulate/step.h"

namespace phalanx::simulate {
namespace {

double predict(const PublishedRuns& runs, Scenario scenario, double calibrated) {
  auto& cluster = scenario.cluster;
  (runs.calibrate == "cluster.efficiency" ? cluster.efficiency : cluster.network_efficiency) = calibrated;
  if (runs.quantity == "scaling_efficiency") return scaling_efficiency(scenario);
  return simulate(scenario).samples_per_second() / static_cast<double>(scenario.ranks());
}

// Finds the value of the field by bisection. Both quantities grow with it.
double calibrate(const PublishedRuns& runs, const Scenario& scenario, const PublishedRow& row) {
  double low = 1e-4, high = 1;
  if (predict(runs, scenario, low) > row.measured || predict(runs, scenario, high) < row.measured) {
    throw ConfigError("rows: no value of " + runs.calibrate + " predicts what " + row.name + " measured");
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (predict(runs, scenario, middle) < row.measured ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

std::vector<Validated> validate(const std::string& path) {
  PublishedRuns runs;
  config::load(runs, path);
  std::vector<Validated> all;
  double calibrated = runs.calibrate == "cluster.efficiency" ? runs.scenario.cluster.efficiency
                                                             : runs.scenario.cluster.network_efficiency;
  for (const auto& row : runs.rows) {
    Scenario scenario = runs.scenario;
    config::load_text(scenario, config::dump(scenario), row.name, row.set);
    if (row.calibrates) calibrated = calibrate(runs, scenario, row);
    all.push_back({row.name, row.measured, predict(runs, scenario, calibrated), row.calibrates});
  }
  return all;
}

}  // namespace phalanx::simulate
