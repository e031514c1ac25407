// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/expectation.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// The metrics that the meters of a run measure. Their values are ignored.
struct MeasuredMetrics {
  Metrics train;
  Metrics evaluation;           // on the validation and the test split
  bool has_validation = false;  // the run has a validation split
};

/// Throws ConfigError, which lists all problems, if a metric is expected that the run does not measure.
void check_measured(const ExpectConfig& expect, const MeasuredMetrics& measured);

}  // namespace phalanx
