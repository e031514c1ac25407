// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "engine/build/replica.h"
#include "engine/config/experiment_config.h"
#include "engine/hooks/watching/watching.h"
#include "engine/meters/meter_set.h"
#include "engine/plan/operation_log.h"
#include "engine/plan/plan_batches.h"
#include "engine/plan/step_plan.h"
#include "engine/task/task.h"

namespace phalanx {

/// A replica in a fake world, which plans a step like plan_step() and can then compute more steps.
class StepPlanner {
 public:
  /// Builds the replica. Throws ConfigError like plan_step().
  StepPlanner(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options);

  /// Returns the plan, without StepPlan::seconds. Must be called once, before the other functions.
  StepPlan plan();

  /// Computes another step with the next batch, and returns its seconds without communication.
  double seconds();

  /// Computes some more steps, and returns the median of their seconds without communication.
  double median_seconds();

 private:
  Optimizer& optimizer() { return replica_.optimizer(); }
  bool by_blocks() const;

  void run();
  void attach();
  void synchronize_blocks();
  void count_sizes(StepPlan& plan) const;
  void count_buckets(StepPlan& plan) const;
  void count_slices(StepPlan& plan) const;
  void count_operations(StepPlan& plan);

  std::function<void()> barrier_;
  std::shared_ptr<OperationLog> log_;
  std::unique_ptr<Task> task_;
  ExperimentConfig config_;
  MeterSet meters_;  // meters of training
  std::unique_ptr<Watching> watching_;
  std::unique_ptr<PlanBatches> batches_;
  Replica replica_;
  std::vector<Slice> slices_;  // empty before attach()
  std::int64_t steps_ = 0;     // updates so far
};

}  // namespace phalanx
