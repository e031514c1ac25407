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

/// A block of a model, as it is divided into stages.
struct BlockCost {
  std::string name;
  double cost = 0;  // operations of one row's forward, and one for each parameter
};

/// Cuts a chain of blocks into `stages` runs whose largest cost is as small as possible. Returns the first block of
/// each run, and the number of blocks. Of several such divisions, takes the one with the shortest first stages. A pure
/// function.
std::vector<std::size_t> cut_evenly(const std::vector<BlockCost>& blocks, std::size_t stages);

/// The same as `names` say: the first block of each stage but the first. Throws ConfigError where they are not
/// stages - 1 blocks in the order of the chain.
std::vector<std::size_t> cut_at(const std::vector<BlockCost>& blocks, const std::vector<std::string>& names,
                                std::size_t stages);

/// Approximate durations of the actions of a PipelineStep relative to each other, if its layers are linear.
inline constexpr pipeline::Costs kStepCosts{.forward = 1, .input_gradient = 1, .weight_gradient = 1, .transfer = 0};

/// Who has what of a model that mesh.pipe divides.
class Pipeline {
 public:
  /// Divides `model`, of which this rank keeps the blocks of its stages from now on; after other axes have divided it.
  /// `arithmetic`: that of the steps. Collective. Throws ConfigError, on all ranks alike, where it cannot be divided
  /// so.
  Pipeline(const ExperimentConfig& config, Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic);

  /// A tensor of the whole model.
  struct Whole {
    std::string name;
    std::vector<std::int64_t> shape{};  // as the ranks have it that have it
    c10::ScalarType dtype = c10::ScalarType::Float;
  };
  static std::vector<Whole> described(const NamedTensors& tensors);

  const std::vector<Whole>& parameters() const { return parameters_; }  // in the model's order
  const std::vector<Whole>& buffers() const { return buffers_; }

  /// The number of ranks of the pipeline that have this tensor, and whether this rank is the first of them.
  int holders(const std::string& tensor) const { return static_cast<int>(holders_.at(tensor).size()); }
  bool first_holder(const std::string& tensor) const { return holders_.at(tensor).front() == rank_; }

  /// The number of these ranks that update it: all, or the first alone, which lends it to the others. Parameter servers
  /// hold each parameter once: in separate tables, which add up the updates of several replicas in another order or at
  /// another time, copies would diverge.
  int updaters(const std::string& parameter) const { return lends_ ? 1 : holders(parameter); }
  bool updates(const std::string& parameter) const { return !lends_ || first_holder(parameter); }

  /// Both copy what the step needs of it.
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
  std::vector<RowSpec> given_;  // by block
  std::vector<RowSpec> predictions_;
  pipeline::Schedule schedule_;
  std::vector<std::size_t> begins_;
  std::vector<Whole> parameters_, buffers_;
  std::map<std::string, std::vector<int>> holders_;  // of parameters and buffers: ranks of the pipeline, ascending
  std::vector<SharedParameters::Group> shared_;
};

}  // namespace phalanx
