// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "datasets/dataset.h"
#include "engine/config/experiment_config.h"
#include "engine/plan/operation_counts.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// The memory and the operations that one rank needs for a training step. All bytes are bytes of this rank.
struct StepPlan {
  MeshShape shape{};
  std::string strategy{};       // its name; "auto" is resolved
  std::int64_t parameters = 0;  // of the whole model
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  std::int64_t activation_bytes = 0;  // peak of forward and backward, in addition to these
  std::int64_t buckets = 0;
  std::int64_t samples = 0;        // in this rank's share of a batch
  std::int64_t micro_batches = 1;  // number of parts of this share
  OperationCounts gradients{};     // operations of the strategy
  OperationCounts layers{};        // operations of sharded layers, experts and batch norm in forward and backward
  OperationCounts control{};       // operations for norms, weights of batches, votes, unused parameters
  double bubble = 0;               // share of the step in which the ranks of a pipeline wait for each other
  double seconds = 0;              // for batch, forward, backward and update of this rank, without communication

  OperationCounts all() const;
};

struct PlanOptions {
  int rank = 0;
  bool shares_memory = true;  // true if the ranks of the real run share memory

  /// A barrier of the ranks that plan together. It is called before the first step and before steps are timed. Threads
  /// of one process must set it, because they share random numbers.
  std::function<void()> barrier = [] {};
};

/// Plans an ordinary step. It is not the last of an epoch, and the config does not evaluate, save, report or check
/// after it. Launches nothing and needs no other rank: the rank's replica is built in a fake world
/// (engine/plan/fake_world.h) and computes a step there.
///
///   strategy      its operations follow from the buckets, the groups that have the same parameters, and the strategy;
///                 for ZeRO's stages 2 and 3 they are counted during a step, as the operations of layers are
///   layers        their operations are counted in forward and backward of the layers, sharded by their plan
///   activations   their bytes are counted by the allocator in that forward and backward
///
/// Throws ConfigError for a strategy whose operations are not a function of the buckets (StepTraffic::kOther): one with
/// parameter servers, compression, gossip, or averaging after several steps.
StepPlan plan_step(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options);

}  // namespace phalanx
