// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/step_plan.h"

#include "engine/plan/step_planner.h"

namespace phalanx {

OperationCounts StepPlan::all() const {
  OperationCounts all;
  for (const auto* counts : {&gradients, &layers, &control}) add(all, *counts);
  return all;
}

StepPlan plan_step(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options) {
  StepPlanner planner(config, splits, options);
  StepPlan plan = planner.plan();
  plan.seconds = planner.median_seconds();
  return plan;
}

}  // namespace phalanx
