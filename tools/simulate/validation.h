// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "tools/simulate/scenario.h"

namespace phalanx::simulate {

/// A published run.
struct PublishedRow {
  std::string name;
  std::vector<std::string> set;
  double measured = 0;
  bool calibrates = false;

  template <class V>
  void visit(V& v) {
    v("name", name, "name of the run");
    v("set", set, "changes to the scenario, each key=value");
    v("measured", measured, "published value", config::above(0));
    v("calibrates", calibrates,
      "choose the calibrated field to match this run; its value holds for the following rows");
  }
};

/// Published runs of one source: a file in tools/simulate/published.
struct PublishedRuns {
  std::string source;
  std::string quantity = "scaling_efficiency";
  std::string calibrate = "cluster.efficiency";
  Scenario scenario;
  std::vector<PublishedRow> rows;

  template <class V>
  void visit(V& v) {
    v("source", source, "where the figures were published");
    v("quantity", quantity, "what was measured", config::one_of({"scaling_efficiency", "samples_per_second_per_rank"}));
    v("calibrate", calibrate, "field that is chosen by rows that calibrate",
      config::one_of({"cluster.efficiency", "cluster.network_efficiency"}));
    v("scenario", scenario, "what runs have in common");
    v("rows", rows, "runs, in this order");
  }
};

struct Validated {
  std::string name;
  double measured = 0, predicted = 0;
  bool calibrates = false;

  double error() const { return predicted / measured - 1; }
};

/// Returns predictions for all rows of a file. Throws ConfigError, also if no value of the calibrated field between
/// 1e-4 and 1 reproduces the row.
std::vector<Validated> validate(const std::string& path);

}  // namespace phalanx::simulate
