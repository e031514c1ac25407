// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/observe/metrics/metrics_record.h"

namespace phalanx::testing {

/// Returns a measurement of training after 20 steps, without a learning rate and times.
inline MetricsRecord record() {
  return {.step = 20,
          .epoch = 0,
          .split = "train",
          .metrics = {{"loss", 0.5}, {"accuracy", 0.875}},
          .samples_per_second = 1000,
          .seconds = 2.5};
}

/// Returns a measurement of training after 300 steps on two ranks, with a learning rate and times.
inline MetricsRecord timed_record() {
  MetricsRecord timed = record();
  timed.step = 300;
  timed.epoch = 1;
  timed.learning_rate = 0.1;
  timed.times = StepTimes{.steps = 20, .ranks = {{0.001, 0.002, 0.003, 0.004, 0.005, 0.006}, {}}};
  return timed;
}

}  // namespace phalanx::testing
