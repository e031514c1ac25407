// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "engine/precision/arithmetic.h"
#include "engine/step/pipeline_step.h"
#include "engine/step/shared_parameters.h"
#include "engine/task/task.h"
#include "framework/base/named_tensors.h"
#include "framework/comm/mesh.h"
#include "framework/parallel/pipeline/schedule.h"
#include "models/model.h"

namespace phalanx {

/// A block of a model, the unit of the division into stages.
struct BlockCost {
  std::string name;
  double cost = 0;  // operations of the forward of one row, plus one for each parameter
};

/// Cuts a chain of blocks into `stages` consecutive stages so that the largest cost of a stage is as small as possible.
/// If there are several such divisions, the first stages are as short as possible. Returns the first block of each
/// stage, followed by the number of blocks. A pure function.
std::vector<std::size_t> cut_evenly(const std::vector<BlockCost>& blocks, std::size_t stages);

/// Returns the same for stages that begin at the blocks `names`, which are the first blocks of all stages except the
/// first. Throws ConfigError unless these are stages - 1 blocks in the order of the chain.
std::vector<std::size_t> cut_at(const std::vector<BlockCost>& blocks, const std::vector<std::string>& names,
                                std::size_t stages);

/// Approximate durations of the actions of a PipelineStep relative to each other, if its layers are linear.
inline constexpr pipeline::Costs kStepCosts{.forward = 1, .input_gradient = 1, .weight_gradient = 1, .transfer = 0};

/// The division of a model by mesh.pipe: which ranks have which blocks, parameters and buffers.
class Pipeline {
 public:
  /// Divides `model`, of which this rank keeps only the blocks of its stages. Other axes must have divided it before.
  /// `arithmetic`: the arithmetic of the steps. Collective. Throws ConfigError, on all ranks, if the model cannot be
  /// divided this way.
  Pipeline(const ExperimentConfig& config, Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic);

  /// A parameter or buffer of the whole model.
  struct Whole {
    std::string name;
    std::vector<std::int64_t> shape{};  // shape on the ranks that have the tensor
    c10::ScalarType dtype = c10::ScalarType::Float;
  };
  static std::vector<Whole> described(const NamedTensors& tensors);

  const std::vector<Whole>& parameters() const { return parameters_; }  // in the model's order
  const std::vector<Whole>& buffers() const { return buffers_; }

  /// Returns the number of ranks of the pipeline that have this tensor, and true if this rank is the first of them.
  int holders(const std::string& tensor) const { return static_cast<int>(holders_.at(tensor).size()); }
  bool first_holder(const std::string& tensor) const { return holders_.at(tensor).front() == rank_; }

  /// Returns the number of ranks that update the parameter, and true if this rank is one of them. Normally all holders
  /// update it. With parameter servers only the first one does, which lends the values to the others: servers would
  /// keep each copy in a separate table and add up the updates of several replicas in another order or at another time,
  /// so the copies would diverge.
  int updaters(const std::string& parameter) const { return lends_ ? 1 : holders(parameter); }
  bool updates(const std::string& parameter) const { return !lends_ || first_holder(parameter); }

  /// Return the schedule and the inputs of PipelineStep, which copies all that it needs.
  const pipeline::Schedule& schedule() const { return schedule_; }
  PipelineStep::Setup setup(Model& model, const Task& task, const Mesh& mesh) const;

 private:
  void measure(Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic);
  void agree_on_costs(Communicator& ranks);
  void find_holders(const Model& model);
  void check_updates(const Model& model) const;
  std::vector<std::size_t> blocks_of(int rank) const;
  void share(const Model& model, const Mesh& mesh);

  int rank_;
  bool lends_;
  bool has_experts_ = false;
  std::vector<BlockCost> blocks_;
  std::vector<RowSpec> given_;  // outputs of each block
  std::vector<RowSpec> predictions_;
  pipeline::Schedule schedule_;
  std::vector<std::size_t> begins_;
  std::vector<Whole> parameters_, buffers_;
  std::map<std::string, std::vector<int>> holders_;  // ranks of the pipeline that have a tensor, ascending
  std::vector<SharedParameters::Group> shared_;
};

}  // namespace phalanx
