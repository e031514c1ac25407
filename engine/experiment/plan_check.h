// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/config/experiment_config.h"
#include "engine/experiment/experiment.h"
#include "engine/plan/step_plan.h"

namespace phalanx {

/// The speed of the links between the ranks of a run, measured by all-reduces of all ranks.
struct MeasuredLinks {
  double latency = 0;    // seconds of an all-reduce of 8 bytes
  double bandwidth = 0;  // bytes per second that a rank sends (wire_bytes()) in an all-reduce of 4 MB
};

/// Returns the seconds of communication in a step, if all operations run one after another.
double communication_seconds(const StepPlan& plan, const MeasuredLinks& links);

/// A plan of a step, compared with a real run.
struct PlanCheck {
  StepPlan plan{};  // of this rank, except seconds, which are of the slowest rank
  MeasuredLinks links{};
  std::string differences{};  // between planned and real operations, over all ranks; empty: none
  double predicted = 0;       // seconds of a step: computation of the slowest rank plus communication
  double measured = 0;        // seconds of the median step
};

/// Plans a step on each rank, then trains for a few steps and counts the operations of one of them. After each real
/// step the ranks compute the planned one, all at the same time because they share cores in the run as well, and
/// measure the links. Prediction and measurement thus see the same load of the machine. Collective.
PlanCheck check_plan(const ExperimentConfig& config, const ExperimentContext& context);

}  // namespace phalanx
