// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/block_costs.h"
#include "engine/build/tensor_holders.h"
#include "engine/config/experiment_config.h"
#include "engine/precision/arithmetic.h"
#include "engine/step/pipeline_step.h"
#include "engine/step/shared_parameters.h"
#include "engine/task/task.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/partition/pipeline/schedule.h"
#include "models/model.h"

namespace phalanx {

/// Approximate durations of the actions of a PipelineStep relative to each other, if its layers are linear.
inline constexpr pipeline::Costs kStepCosts{.forward = 1, .input_gradient = 1, .weight_gradient = 1, .transfer = 0};

/// The division of a model by mesh.pipe: which ranks have which blocks, parameters and buffers.
class Pipeline {
 public:
  /// Partitions `model`, of which this rank keeps only the blocks of its stages. Other axes must have partitioned it
  /// before.
  /// `arithmetic`: the arithmetic of the steps. `batch`: the samples of a step over all ranks. Collective. Throws
  /// ConfigError, on all ranks, if the model cannot be partitioned this way.
  Pipeline(const ExperimentConfig& config, Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic,
           std::int64_t batch);

  /// Return the parameters and buffers of the whole model, in the model's order.
  const std::vector<WholeTensor>& parameters() const { return holders_.parameters(); }
  const std::vector<WholeTensor>& buffers() const { return holders_.buffers(); }

  /// Returns the number of ranks of the pipeline that have this tensor, and true if this rank is the first of them.
  int holders(const std::string& tensor) const { return static_cast<int>(holders_.ranks(tensor).size()); }
  bool first_holder(const std::string& tensor) const { return holders_.ranks(tensor).front() == rank_; }

  /// Returns the number of ranks that update the parameter, and true if this rank is one of them. Normally all holders
  /// update it. With parameter servers only the first one does, and broadcasts the values to the others: servers would
  /// keep each copy in a separate table and add up the updates of several replicas in another order or at another time,
  /// so the copies would diverge.
  int updaters(const std::string& parameter) const { return owner_updates_ ? 1 : holders(parameter); }
  bool updates(const std::string& parameter) const { return !owner_updates_ || first_holder(parameter); }

  /// Return the schedule and the inputs of PipelineStep, which copies all that it needs.
  const pipeline::Schedule& schedule() const { return schedule_; }
  PipelineStep::Setup setup(Model& model, const Task& task, const Mesh& mesh) const;

  /// Returns the listener of a PipelineStep that keeps the parameters of several stages in agreement.
  std::shared_ptr<SharedParameters> shared_parameters(const Mesh& mesh) const;

 private:
  void refuse_shared_statistics() const;
  void check_updates(const Model& model) const;
  std::vector<std::size_t> blocks_of(int rank) const;
  std::vector<SharedParameters::Group> share(const Model& model, const Mesh& mesh) const;
  std::string describe_stages() const;

  int rank_;
  bool owner_updates_;
  bool has_experts_;
  pipeline::Schedule schedule_;
  MeasuredBlocks blocks_;            // of the whole model
  std::vector<std::size_t> begins_;  // first block of each stage, followed by the number of blocks
  TensorHolders holders_;
  std::vector<SharedParameters::Group> shared_;
};

}  // namespace phalanx
