// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "datasets/dataset.h"
#include "engine/experiment/config.h"
#include "engine/plan/operation_log.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// Memory and operations that one rank needs for a training step. Bytes are of this rank.
struct StepPlan {
  MeshShape shape{};
  std::string strategy{};       // "auto" is resolved
  std::int64_t parameters = 0;  // of the whole model
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  std::int64_t activation_bytes = 0;  // the most that forward and backward hold at once beside these
  std::int64_t buckets = 0;
  std::int64_t samples = 0;        // of this rank's share of a batch
  std::int64_t micro_batches = 1;  // into which it is cut
  OperationCounts gradients{};     // what the strategy does
  OperationCounts layers{};        // what divided layers, experts and batch norm do in forward and backward
  OperationCounts control{};       // norms, weights of batches, votes, unused parameters
  double bubble = 0;               // share of the step in which a pipeline's ranks wait for each other
  double seconds = 0;              // batch, forward, backward and update of this rank, without communication

  OperationCounts all() const;
};

struct PlanOptions {
  int rank = 0;
  bool shares_memory = true;           // whether the real ranks would
  std::function<void()> meet = [] {};  // of ranks that plan together: before the first step, and before steps are
                                       // timed. Threads of one process have to: they share random numbers.
};

/// Plans an ordinary step: not the last of an epoch, and none after which the config evaluates, saves, reports or
/// checks. Nothing is launched and no other rank is needed: the rank's replica is built in a world without peers
/// (engine/plan/rehearsal_world.h) and computes a step there.
///
///   the strategy's   operations follow from the buckets, the groups that have the same parameters, and the strategy;
///                    those of ZeRO's stages 2 and 3 are counted in a step, as those of the layers
///   the layers'      are those that forward and backward of the replica's layers, divided by their plan, ask for
///   activations      are counted by the allocator in that forward and backward
///
/// Throws ConfigError for a strategy whose operations are not a function of the buckets: those with parameter servers,
/// compression, gossip, averaging now and then.
StepPlan plan_step(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options);

/// The same, where the replica stays for more steps.
class StepRehearsal {
 public:
  StepRehearsal(const ExperimentConfig& config, const Splits& splits, const PlanOptions& options);
  ~StepRehearsal();

  /// Once, and before seconds().
  StepPlan plan();

  /// Another step, with a batch of its own: what it takes without communication.
  double seconds();

 private:
  class Replica;

  std::unique_ptr<Replica> replica_;
};

/// The config without what happens besides ordinary steps, for `steps` of them: for comparing them with the plan.
ExperimentConfig only_steps(ExperimentConfig config, std::int64_t steps);

/// Describes the differences between two counts of the same operations, one per line; empty: there are none.
std::string differences(const MeshShape& shape, const OperationCounts& planned, const OperationCounts& seen);

/// Collective over `world`, whose ranks have all_to_alls of different sizes: each kind's sum over the ranks.
OperationCounts over_ranks(const OperationCounts& counts, Communicator& world);

}  // namespace phalanx
