// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/meters/meter_set.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `evaluate` of a config.
struct EvaluateConfig {
  std::int64_t every_epochs = 1;
  std::int64_t every_steps = 0;
  std::int64_t global_batch_size = 0;
  double validation = 0;
  std::vector<MeterConfig> meters;

  template <class V>
  void visit(V& v) {
    v("every_epochs", every_epochs, "evaluate after every n-th epoch and after the last; 0: not by epochs",
      config::at_least(0));
    v("every_steps", every_steps, "also evaluate after every n-th step; 0: not by steps", config::at_least(0));
    v("global_batch_size", global_batch_size,
      "samples per evaluation batch over all ranks; 0: as train.global_batch_size, but at most 256",
      config::at_least(0));
    v("validation", validation, "share of the training samples to hold out as validation split; 0: none",
      config::between(0, 1));
    v("meters", meters, "metrics of an evaluation; empty: the metrics of the task");
  }
};

}  // namespace phalanx
