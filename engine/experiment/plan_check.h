// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/step_plan.h"

namespace phalanx {

/// Links between the ranks of a run, as an all-reduce of all of them finds them.
struct MeasuredLinks {
  double latency = 0;    // seconds of an operation of 8 bytes
  double bandwidth = 0;  // bytes that a rank sends a second (wire_bytes()) in one of 4 MB
};

/// Seconds of communication in a step, one operation after the other.
double communication_seconds(const StepPlan& plan, const MeasuredLinks& links);

/// A plan beside the run that it is of.
struct PlanCheck {
  StepPlan plan{};  // of this rank; its seconds are those of the slowest
  MeasuredLinks links{};
  std::string differences{};  // between operations planned and seen, over all ranks; empty: none
  double predicted = 0;       // seconds of a step: of the slowest rank's own work, and of communication
  double measured = 0;        // the median step's
};

/// Plans a step on each rank and runs a few steps, of which it counts one's operations. After each step of the run the
/// ranks compute the planned one, all at the same time, as they share cores in the run, and measure the links: what is
/// predicted and what is measured then met the same machine, whatever else it does. Collective.
PlanCheck check_plan(const ExperimentConfig& config, const ExperimentContext& context);

}  // namespace phalanx
