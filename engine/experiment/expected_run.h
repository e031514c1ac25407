// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/config/expectation.h"
#include "engine/experiment/expectation_result.h"
#include "engine/hooks/milestones.h"
#include "engine/plan/step_communication.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// The measurements of a run at its end.
struct MeasuredRun {
  const Metrics& train;
  const Metrics& validation;
  const Metrics& test;
  const Milestones& milestones;
  std::int64_t epochs = 0;  // epochs that had begun
  double samples_per_second = 0;
  std::vector<std::int64_t> peak_memory{};  // bytes, by rank
  std::optional<TrafficComparison> traffic{};
};

/// Compares a run with everything that is expected of it and that it can know by itself, in the order of the config.
/// NaN is out of all bounds.
std::vector<ExpectationResult> compare(const ExpectConfig& expect, const MeasuredRun& run);

}  // namespace phalanx
