// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "datasets/dataset.h"
#include "engine/build/replica.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/plan/operation_counts.h"
#include "engine/plan/operation_log.h"
#include "engine/plan/step_communication.h"
#include "engine/run_length.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Counts the operations of an ordinary step of a run, from the sample to the vote on stopping. Metrics, evaluations,
/// checkpoints and checks are not part of it.
class TrafficCheck {
 public:
  /// Counts the operations on `world` and on all groups split from it. Training must use world().
  TrafficCheck(const ExperimentConfig& config, const CommunicatorPtr& world);

  const CommunicatorPtr& world() const { return world_; }

  /// Throws ConfigError if the steps of this replica cannot be planned.
  void check(const Replica& replica) const;

  /// Adds the hooks, which must come after the hooks of the stop vote. `length` must outlive the engine's training.
  void attach(Engine& engine, const RunLength& length);

  /// Plans a step and compares it with the one that was counted. Returns nothing if the run had no ordinary step.
  /// Collective. Must be called after training, because it draws random numbers and needs memory for another replica.
  std::optional<TrafficComparison> compare(const Splits& splits, const Replica& replica) const;

 private:
  bool ordinary(const State& state, const RunLength& length) const;
  OperationCounts plan(const Splits& splits, const Replica& replica) const;

  ExperimentConfig config_;
  MeshShape shape_;
  std::shared_ptr<OperationLog> log_;
  CommunicatorPtr world_;
  std::int64_t steps_ = 0;  // that this process has taken
  std::optional<OperationCounts> seen_;
};

}  // namespace phalanx
