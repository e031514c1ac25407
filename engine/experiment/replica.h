#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/experiment/agreement.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/parameter_update.h"
#include "engine/experiment/pipeline.h"
#include "engine/experiment/training_step.h"
#include "engine/experiment/training_turns.h"
#include "engine/sync/invariant.h"
#include "engine/sync/replica_groups.h"
#include "engine/sync/synchronizers.h"
#include "engine/task/task.h"
#include "engine/watch/watching.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/mesh.h"
#include "framework/parallel/flat_parameters.h"
#include "models/model.h"

namespace phalanx {

/// The model that the config names for what the task asks of it, with the initial values of the config's seed: the same
/// on all ranks. Throws ConfigError.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec);

/// One rank's replica of the model, and all that changes it: its step, its optimizer, and how it agrees with others.
class Replica {
 public:
  /// All must outlive it. Collective. Throws ConfigError where the parts of the config do not go together.
  Replica(const ExperimentConfig& config, Task& task, const Mesh& mesh, const ExperimentContext& context,
          Watching& watching);

  /// This rank's part of the model, where the mesh divides it.
  const std::shared_ptr<Model>& model() const { return model_; }
  const Placements& placements() const { return placements_; }

  /// The parameters by the ranks that have the same ones; none where each value is on one rank alone.
  std::vector<ReplicaGroup> groups() const;

  std::int64_t parameter_count() const;  // of the whole model

  /// Parameters and buffers that only other ranks of the pipeline have, or update.
  std::set<std::string> elsewhere() const;

  /// Of a pipeline: the part of the steps' time in which its ranks waited, and that of the schedule with stages that
  /// take as long as each other; the most micro-batches whose activations a rank had at once. Collective.
  Figures pipeline_figures() const;

  /// Parameters and buffers of the whole model, on rank 0; elsewhere, and unless `wanted`, none. Collective.
  NamedTensors whole_weights(bool wanted) const;

  const FlatParameters& parameters() const { return parameters_; }
  Synchronizer& synchronizer() { return *synchronizer_; }
  const Synchronizer& synchronizer() const { return *synchronizer_; }
  ParameterUpdate& update() { return update_; }
  const ParameterUpdate& update() const { return update_; }
  TrainingStep& step() { return step_; }
  const Agreement& agreement() const { return agreement_; }

  /// Of which the model is a stage; null: it is whole.
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
  std::shared_ptr<Model> make_initial_model(const ModelSpec& spec) const;
  std::shared_ptr<Model> make_other_model(const ModelSpec& spec) const;
  Placements divide_model(const ModelSpec& spec);
  void share_positions(const ModelSpec& spec);
  void divide_sequence();
  std::optional<Pipeline> divide_into_stages(const Task& task);
  std::vector<Pipeline::Whole> whole_parameters() const;
  at::Tensor whole_tensor(const Pipeline::Whole& tensor, const CommunicatorPtr& parts) const;
  void refuse_to_record_messages() const;
  c10::Device moved_to(c10::Device device) const;
  NamedTensors updated_here() const;
  FlatParameters::GroupOf bucket_groups() const;
  NamedTensors gathered_weights(bool wanted) const;
  std::unique_ptr<Synchronizer> make_synchronizer(const ExperimentContext& context);
  std::unique_ptr<Optimizer> make_optimizer() const;
  void gather_parts(Optimizer& optimizer) const;
  TrainingStep::Setup setup_of_step(Task& task, Watching& watching);

  const ExperimentConfig& config_;
  const Mesh& mesh_;
  std::shared_ptr<Model> model_;
  std::set<std::string> experts_;  // parameters of experts that ranks have divided
  Placements placements_;          // of its parameters
  std::optional<Pipeline> pipeline_;
  Agreement agreement_;
  TrainingTurns turns_;
  c10::Device device_;  // where the model is from here on
  FlatParameters parameters_;  // that this rank's strategy updates
  std::vector<ReplicaGroup> groups_;
  Invariant* invariant_ = nullptr;  // what synchronizer_ is with determinism: world_size_invariant
  std::unique_ptr<Synchronizer> synchronizer_;
  ParameterUpdate update_;
  TrainingStep step_;
};

}  // namespace phalanx
