// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Defines when a run ends because it no longer improves.
struct EarlyStopConfig {
  std::string metric;
  std::string best = "auto";
  std::int64_t patience = 3;
  double min_delta = 0;

  template <class V>
  void visit(V& v) {
    v("metric", metric, "test metric to watch; empty: no early stopping");
    v("best", best, "whether its highest or lowest value is best; auto: as the task says for its own metric",
      config::one_of({"auto", "highest", "lowest"}));
    v("patience", patience, "consecutive tests without improvement to tolerate", config::at_least(0));
    v("min_delta", min_delta, "minimum change that counts as an improvement, in the metric's unit",
      config::at_least(0));
  }
};

}  // namespace phalanx
