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

/// One rank's replica of the model with everything that changes it: its step, its optimizer, and its strategy.
class Replica {
 public:
  /// All arguments must outlive the replica. Collective. Throws ConfigError if parts of the config cannot be combined.
  Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
          Watching& watching);

  /// Returns this rank's part of the model, or the whole model if the mesh does not divide it.
  const std::shared_ptr<Model>& model() const { return model_; }
  const Placements& placements() const { return divided_.placements; }
  const WholeModel& whole() const { return whole_; }

  /// Returns the names of parameters and buffers that this rank does not have, or that other ranks of the replica
  /// update.
  std::set<std::string> elsewhere() const;

  /// Returns the parameters, grouped by the ranks that have copies of them. Empty if each value is on one rank only.
  std::vector<ReplicaGroup> groups() const;

  /// Returns figures of the pipeline: the share of the steps' time in which its ranks waited, the same share for an
  /// ideal run of the schedule whose stages all take equally long, and the largest number of micro-batches whose
  /// activations a rank held at the same time. Collective.
  Figures pipeline_figures() const;

  /// Returns the parameters and buffers of the whole model, even if the strategy materializes values only while they
  /// are used. See WholeModel::gather(). Collective.
  NamedTensors whole_weights(bool wanted) const;

  const FlatParameters& parameters() const { return parameters_; }
  Synchronizer& synchronizer() { return *synchronizer_; }
  const Synchronizer& synchronizer() const { return *synchronizer_; }
  ParameterUpdate& update() { return update_; }
  const ParameterUpdate& update() const { return update_; }
  TrainingStep& step() { return step_; }

  /// Returns the parts of a checkpoint that the update needs in addition to the optimizer's state.
  std::vector<CheckpointPart> parts();
  const Agreement& agreement() const { return agreement_; }

  /// Returns the pipeline in which the model is a stage; null if the model is not divided into stages.
  const Pipeline* pipeline() const { return pipeline_ ? &*pipeline_ : nullptr; }

  /// Copies the buffers of rank 0 to all ranks, before the first step. Collective.
  void broadcast_buffers();

  /// Returns the buffers that as_evaluated() uses. Collective.
  NamedTensors shared_buffers() const;

  /// Materializes all values of the model for good and hands the model over to the caller. Must be called after the
  /// last step. Collective.
  void keep_values();

  /// Calls `body` while the model is as in evaluations: all ranks have the same buffers, so that results do not depend
  /// on the division of samples between ranks, and parameters hold their averages if the config asks for averages.
  /// Collective.
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
  c10::Device device_;         // device of the model, once it has been moved there
  FlatParameters parameters_;  // parameters that this rank updates
  std::vector<ReplicaGroup> groups_;
  Invariant* invariant_ = nullptr;  // synchronizer_, with determinism: world_size_invariant; otherwise null
  std::unique_ptr<Synchronizer> synchronizer_;
  UnusedParameters unused_;
  ParameterUpdate update_;
  TrainingStep step_;
};

}  // namespace phalanx
