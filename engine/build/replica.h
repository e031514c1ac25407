// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/build/flatten.h"
#include "engine/build/parameter_update.h"
#include "engine/build/partition.h"
#include "engine/build/replica_strategy.h"
#include "engine/build/resolved_settings.h"
#include "engine/build/training_step.h"
#include "engine/build/training_turns.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/experiment_config.h"
#include "engine/hooks/watching/watching.h"
#include "engine/run_folder.h"
#include "engine/strategies/strategy.h"
#include "engine/task/task.h"
#include "framework/base/named_tensors.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// One rank's replica of the model with everything that changes it. The members are the results of the phases of
/// build_replica(), in their order. Later ones refer to what earlier ones point to, which does not move.
struct Replica {
  std::unique_ptr<PartitionedModel> part;
  ResolvedSettings settings;
  std::unique_ptr<TrainingTurns> turns;
  std::unique_ptr<FlatModel> flat;
  ReplicaStrategy replica_strategy;
  std::unique_ptr<ParameterUpdate> update;
  std::unique_ptr<TrainingStep> step;

  const Mesh& mesh() const { return part->mesh; }
  Model& model() const { return *part->model; }
  Strategy& strategy() const { return *replica_strategy.strategy; }
  Optimizer& optimizer() const { return update->optimizer(); }

  /// Returns true if each rank has a whole replica and all replicas are equal (StrategyTraits::ranks_are_equal()), so
  /// that any rank can be lost without a copy.
  bool ranks_are_equal() const;

  /// Returns true if a rank goes on from its own state when others are lost: since ranks_are_equal(), or since each of
  /// them has its own replica, and what they share is on parameter servers (StrategyTraits::keeps_centre).
  bool goes_on_from_own_state() const;

  /// Returns the parameters, grouped by the ranks that have copies of them. Empty if each value is on one rank only.
  std::vector<DataParallelGroup> copied_groups() const;

  /// Returns the names of parameters and buffers that this rank does not have, or that other ranks of the replica
  /// update.
  std::set<std::string> elsewhere() const;

  /// Returns the parts of a checkpoint that the update needs in addition to the optimizer's state.
  std::vector<CheckpointPart> parts() const;

  /// Copies the buffers of rank 0 to all ranks, before the first step. Collective.
  void broadcast_buffers() const;

  /// Returns the buffers that as_evaluated() uses. Collective.
  NamedTensors shared_buffers() const;

  /// Calls `body` while the model is as in evaluations: all ranks have the same buffers, so that results do not depend
  /// on the division of samples between ranks, and parameters hold their averages if the config asks for averages.
  /// Collective.
  void as_evaluated(const std::function<void()>& body) const;

  /// Returns the parameters and buffers of the whole model, even if the strategy materializes values only while they
  /// are used. See gather_whole_model(). Collective.
  NamedTensors whole_weights(bool wanted) const;

  /// Materializes all values of the model for good and hands the model over to the caller. Must be called after the
  /// last step. Collective.
  void unshard() const;

  /// Returns metrics of the pipeline: the share of the steps' time in which its ranks waited, the same share for an
  /// ideal run of the schedule whose stages all take equally long, and the largest number of micro-batches whose
  /// activations a rank held at the same time. Collective.
  Metrics pipeline_metrics() const;
};

/// The surroundings of a replica.
struct ReplicaContext {
  c10::Device device{c10::kCPU};                  // where this rank computes
  RunFolder folder{};                             // of the run; may have checkpoints, from which it resumes
  std::shared_ptr<ps::CurrentServers> servers{};  // parameter servers of the run; null or empty: none
  std::int64_t batch = 0;                         // samples of a step over all ranks; 0: train.global_batch_size
};

/// Builds a replica in phases, each of which can be called alone:
///
///   make_initial_model    the whole model with its initial values, on the CPU
///   partition             this rank's part of it
///   resolve_settings      the strategy and the size of the buckets
///   TrainingTurns         the turns in which parameters are trained
///   place                 the part on the rank's device
///   flatten               its parameters in buckets
///   build_strategy        the strategy, which synchronizes the buckets of all ranks
///   build_optimizer       the optimizer
///   ParameterUpdate       the optimizer with clipping, loss scaling and averages
///   TrainingStep          forward and backward
///
/// `config`, `task` and `watching` must outlive the replica. Collective: all ranks of the mesh take part in each phase.
/// Throws ConfigError if parts of the config cannot be combined.
Replica build_replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ReplicaContext& context,
                      Watching& watching);

}  // namespace phalanx
