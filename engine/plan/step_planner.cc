// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/step_planner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/build/split_loader.h"
#include "engine/build/whole_model.h"
#include "engine/config/defaults.h"
#include "engine/plan/fake_world.h"
#include "engine/plan/live_memory.h"
#include "engine/plan/plannable.h"
#include "engine/plan/planned_traffic.h"
#include "framework/base/quantile.h"
#include "framework/partition/pipeline/timeline.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTimed = 9;  // number of timed steps, of which the median counts

const ExperimentConfig& plannable(const ExperimentConfig& config) {
  check_plannable(config);
  return config;
}

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

}  // namespace

StepPlanner::StepPlanner(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options)
    : barrier_(options.barrier),
      log_(std::make_shared<OperationLog>()),
      task_(plannable(config).task.make(splits.train->spec(), config.loss.make())),
      config_(with_defaults_of(*task_, config)),
      meters_(config_.watch.meters) {
  const MeshShape shape = mesh_shape(config.mesh, training_ranks(config));
  const Mesh mesh(make_fake_world(shape, options.rank, options.shares_memory, log_), shape);
  watching_ = std::make_unique<Watching>(config_.watch, mesh.control(), RunFolder());
  batches_ = std::make_unique<PlanBatches>(config_, with_held_out(splits, config).train, *task_, mesh);
  replica_ = build_replica(config_, *task_, mesh, {}, *watching_);
  batches_->load();
  replica_.step->start(0);
}

StepPlan StepPlanner::plan() {
  StepPlan plan{.shape = replica_.mesh().shape(), .strategy = replica_.settings.strategy.selected()};
  count_sizes(plan);
  count_buckets(plan);
  if (by_blocks()) attach();  // blocks need it to have values
  count_slices(plan);
  barrier_();
  run();  // warms up, since the first step allocates and creates what later ones reuse
  log_->take();
  {
    const LiveMemory memory;
    run();
    plan.activation_bytes = memory.peak();
  }
  count_operations(plan);
  for (const auto& state : optimizer().state()) plan.optimizer_bytes += bytes_of(state.values);
  return plan;
}

double StepPlanner::seconds() {
  const auto start = Clock::now();
  batches_->load();
  run();
  replica_.strategy().before_update(steps_);
  optimizer().update();
  replica_.strategy().after_update(steps_++);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns true for ZeRO's stages 2 and 3, which communicate during forward and backward.
bool StepPlanner::by_blocks() const { return replica_.settings.strategy.traits().frees_gradients; }

// Computes forward and backward of the batch.
void StepPlanner::run() {
  replica_.step->step().run(batches_->batch(), [this](Stage stage, const Step::Result& result) {
    if (stage != Stage::kForwardCriterion) return;
    meters_.add(batches_->batch(), result);  // meters may read outputs that are sharded between ranks
  });
}

void StepPlanner::attach() {
  auto& strategy = replica_.strategy();
  slices_ = strategy.attach(replica_.flat->parameters, optimizer().cut());
  optimizer().attach(slices_);
  strategy.attach_state(optimizer().state());
}

// Completes a step of a strategy that communicates by blocks, without changing the parameters: with whole parameters,
// it gathers them after the update.
void StepPlanner::synchronize_blocks() {
  replica_.strategy().before_update(steps_);
  replica_.strategy().after_update(steps_++);
}

void StepPlanner::count_sizes(StepPlan& plan) const {
  plan.parameters = parameter_count(*replica_.part);
  plan.samples = batches_->batch().valid;
  plan.micro_batches = config_.train.accumulate;
  if (const auto& pipeline = replica_.part->pipeline) {
    plan.micro_batches = pipeline->schedule().micro_batches;
    plan.bubble = pipeline::simulate(pipeline->schedule(), kStepCosts).bubble;
  }
}

void StepPlanner::count_buckets(StepPlan& plan) const {
  const auto traits = replica_.settings.strategy.traits();
  for (const auto& bucket : replica_.flat->parameters.buckets()) {
    ++plan.buckets;
    if (!traits.shards_values) plan.parameter_bytes += bytes_of(bucket.values);
    if (!traits.frees_gradients) plan.gradient_bytes += bytes_of(bucket.gradients);
  }
}

// Counts what buckets do not keep.
void StepPlanner::count_slices(StepPlan& plan) const {
  const auto traits = replica_.settings.strategy.traits();
  for (const auto& slice : slices_) {
    if (traits.shards_values) plan.parameter_bytes += bytes_of(slice.values);
    if (traits.frees_gradients) plan.gradient_bytes += bytes_of(slice.gradients);
  }
}

// Counts the operations of the step that has just been run.
void StepPlanner::count_operations(StepPlan& plan) {
  if (by_blocks()) {
    synchronize_blocks();
    StepOperations step = separate(log_->take(), replica_);
    plan.gradients = std::move(step.gradients);
    plan.layers = std::move(step.layers);
  } else {
    plan.layers = log_->take();
    attach();
    plan.gradients = gradient_operations(replica_);
  }
  plan.control = control_operations(replica_, config_.train, batches_->batch().row_weights.defined());
}

double StepPlanner::median_seconds() {
  seconds();  // warms up
  barrier_();
  std::vector<double> timed;
  for (int i = 0; i < kTimed; ++i) timed.push_back(seconds());
  return median(timed);
}

}  // namespace phalanx
