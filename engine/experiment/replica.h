// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/experiment/agreement.h"
#include "engine/experiment/config.h"
#include "engine/experiment/divided_model.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/parameter_update.h"
#include "engine/experiment/pipeline.h"
#include "engine/experiment/training_step.h"
#include "engine/experiment/training_turns.h"
#include "engine/experiment/whole_model.h"
#include "engine/optim/clip.h"
#include "engine/sync/invariant.h"
#include "engine/sync/replica_groups.h"
#include "engine/sync/synchronizers.h"
#include "engine/sync/unused_parameters.h"
#include "engine/task/task.h"
#include "engine/watch/watching.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/mesh.h"
#include "framework/parallel/flat_parameters.h"
#include "models/model.h"

namespace phalanx {

/// One rank's replica of the model, and all that changes it: its step, its optimizer, and how it agrees with others.
class Replica {
 public:
  /// All must outlive it. Collective. Throws ConfigError where the parts of the config do not go together.
  Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
          Watching& watching);

  /// This rank's part of the model, where the mesh divides it.
  const std::shared_ptr<Model>& model() const { return model_; }
  const Placements& placements() const { return divided_.placements; }
  const WholeModel& whole() const { return whole_; }

  /// Parameters and buffers that only other ranks of the replica have, or update.
  std::set<std::string> elsewhere() const;

  /// The parameters by the ranks that have the same ones; none where each value is on one rank alone.
  std::vector<ReplicaGroup> groups() const;

  /// Returns figures of the pipeline: the part of the steps' time in which its ranks waited, the same for a schedule
  /// whose stages all take as long as each other, and the most micro-batches whose activations a rank had at once.
  /// Collective.
  Figures pipeline_figures() const;

  /// Parameters and buffers of the whole model, also where a strategy has values only while they are used: see
  /// WholeModel::gather(). Collective.
  NamedTensors whole_weights(bool wanted) const;

  const FlatParameters& parameters() const { return parameters_; }
  Synchronizer& synchronizer() { return *synchronizer_; }
  const Synchronizer& synchronizer() const { return *synchronizer_; }
  ParameterUpdate& update() { return update_; }
  const ParameterUpdate& update() const { return update_; }
  TrainingStep& step() { return step_; }

  /// Returns the parts of a checkpoint with what the update remembers beside the optimizer's state.
  std::vector<CheckpointPart> parts();
  const Agreement& agreement() const { return agreement_; }

  /// The pipeline of which the model is a stage; null: the model is whole.
  const Pipeline* pipeline() const { return pipeline_ ? &*pipeline_ : nullptr; }

  /// Gives all ranks the buffers of rank 0, before the first step. Collective.
  void broadcast_buffers();

  /// The buffers as they are evaluated; see as_evaluated(). Collective.
  NamedTensors shared_buffers() const;

  /// The model has all its values from now on, and is nobody's but the caller's. After the last step. Collective.
  void keep_values();

  /// Calls `body` with the model as it is evaluated: all ranks with the same buffers, so that results do not depend on
  /// which rank has which samples, and with averages of the parameters where the config asks for them. Collective.
  void as_evaluated(const std::function<void()>& body);

 private:
  std::optional<Pipeline> divide_into_stages(const Task& task);
  void refuse_to_record_messages() const;
  c10::Device moved_to(c10::Device device) const;
  bool lends_along_tensor(const std::string& parameter) const;
  bool updates(const std::string& parameter) const;
  NamedTensors updated_here() const;
  void refuse_idle_ranks(bool idle) const;
  std::vector<at::Tensor> lent_along_tensor() const;
  Clip::Parts parts_of_norm() const;
  FlatParameters::GroupOf bucket_groups() const;
  std::unique_ptr<Synchronizer> make_synchronizer(const ExperimentContext& context);
  std::set<std::string> find_unused();
  std::unique_ptr<Optimizer> make_optimizer();
  void gather_parts(Optimizer& optimizer) const;
  TrainingStep::Setup setup_of_step(Task& task, Watching& watching);

  const ExperimentConfig& config_;
  const Mesh& mesh_;
  std::shared_ptr<Model> model_;
  DividedModel divided_;
  std::optional<Pipeline> pipeline_;
  WholeModel whole_;
  Agreement agreement_;
  TrainingTurns turns_;
  c10::Device device_;         // where the model is from here on
  FlatParameters parameters_;  // that this rank's strategy updates
  std::vector<ReplicaGroup> groups_;
  Invariant* invariant_ = nullptr;  // what synchronizer_ is with determinism: world_size_invariant
  std::unique_ptr<Synchronizer> synchronizer_;
  UnusedParameters unused_;
  ParameterUpdate update_;
  TrainingStep step_;
};

}  // namespace phalanx
