// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/traffic_check.h"

#include <string>
#include <utility>

#include "engine/plan/counting_communicator.h"
#include "engine/plan/plannable.h"
#include "engine/plan/step_planner.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// The first steps create what later ones reuse, and may differ from them.
constexpr std::int64_t kFirstOrdinary = 3;

bool is_due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

// Returns the config with the ranks that train, since a launcher may have started others than it says, and with the
// settings that the run has resolved.
ExperimentConfig planned_config(ExperimentConfig config, const Replica& replica) {
  config.launch.ranks = replica.mesh().world()->size();
  config.framework.bucket_bytes = std::to_string(replica.settings.bucket_bytes);
  config.strategy = replica.settings.strategy;
  config.checkpoint.resume = "none";
  return config;
}

}  // namespace

TrafficCheck::TrafficCheck(const ExperimentConfig& config, const CommunicatorPtr& world)
    : config_(config),
      shape_(mesh_shape(config.mesh, world->size())),
      log_(std::make_shared<OperationLog>()),
      world_(count_operations(world, shape_, log_)) {}

void TrafficCheck::check(const Replica& replica) const {
  try {
    check_plannable(planned_config(config_, replica));
    check_plannable(replica.settings.strategy);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("expect.traffic: there is no plan to compare with: ") + error.what());
  }
}

void TrafficCheck::attach(Engine& engine, const RunLength& length) {
  engine.on(Event::kSample, HookPhase::kFirst, [this](State&) { log_->take(); });
  engine.on(Event::kUpdate, HookPhase::kVote, [this, &length](State& state) {
    ++steps_;
    auto counts = log_->take();
    if (!seen_ && ordinary(state, length)) seen_ = std::move(counts);
  });
}

// Returns true if the step is as a plan describes it. The last batch of an epoch may be smaller, and checks communicate
// before the vote.
bool TrafficCheck::ordinary(const State& state, const RunLength& length) const {
  return steps_ >= kFirstOrdinary && !length.ends_epoch(state.epoch, state.cursor) &&
         !is_due(config_.watch.nan_guard.every_steps, state.step) &&
         !is_due(config_.watch.gradient_norms.every_steps, state.step) &&
         !is_due(config_.replica_check.every_steps, state.step);
}

std::optional<TrafficComparison> TrafficCheck::compare(const Splits& splits, const Replica& replica) const {
  if (!seen_) return std::nullopt;
  Communicator& control = *replica.mesh().control();
  const auto seen = over_ranks(*seen_, control);
  OperationCounts planned;
  try {
    planned = over_ranks(plan(splits, replica), control);
  } catch (const ConfigError& error) {  // on all ranks; must not end a run that has not written its results yet
    return TrafficComparison{.seen = communication_of(shape_, seen),
                             .differences = std::string("the step cannot be planned: ") + error.what()};
  }
  return TrafficComparison{.planned = communication_of(shape_, planned),
                           .seen = communication_of(shape_, seen),
                           .differences = differences(shape_, planned, seen)};
}

OperationCounts TrafficCheck::plan(const Splits& splits, const Replica& replica) const {
  Communicator& control = *replica.mesh().control();
  const PlanOptions options{.rank = world_->rank(), .shares_memory = world_->shares_memory(), .barrier = [&control] {
                              control.barrier().wait();
                            }};
  return StepPlanner(planned_config(config_, replica), splits, options).plan().all();
}

}  // namespace phalanx
