// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"
#include "models/sequence.h"

namespace phalanx {

struct LowRank;
class DividedLinear;

/// The base class of models made of torch::nn modules, which are registered in the constructor. A model that is a chain
/// of blocks adds the blocks there, too. Other models override forward() if they have one input and one output, and
/// outputs() otherwise. Names and order of parameters and buffers are those of torch::nn::Module.
class Network : public torch::nn::Module, public Model {
 public:
  virtual at::Tensor forward(at::Tensor input);  // [n, ...] -> [n, ...]; a chain runs its blocks

  Tensors outputs(const Tensors& inputs) override;

  void train(bool on = true) override;
  using Model::eval;

  NamedTensors named_parameters() const override;
  NamedTensors named_buffers() const override;
  using Model::buffers;
  using Model::parameters;

  const std::vector<Block>& blocks() const override { return blocks_; }
  void run_blocks_by(BlockRunner runner) override { runner_ = std::move(runner); }
  void keep_blocks(const std::vector<std::size_t>& blocks) override;

  /// Supported by models with three blocks or more.
  bool checkpoint_activations(std::int64_t segments) override;

  /// Layers that `plan` names must implement TensorParallel.
  Placements divide(const TensorPlan& plan, const CommunicatorPtr& group) override;

  /// Overlaps the exchange of all linear layers.
  void overlap_exchange() override;

  /// Divides the layers that implement ExpertParallel.
  Placements divide_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) override;

  /// Batch-norm layers must be of the class in models/batch_norm.h.
  std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) override;

  /// See models/low_rank.h.
  std::int64_t add_adapters(const LowRank& adapters);
  NamedTensors merged() const;

 protected:
  /// Adds the next block. `used` has the names of the modules or parameters that it uses.
  void add_block(std::string name, const std::vector<std::string>& used,
                 std::function<at::Tensor(const at::Tensor& input)> forward);

  /// Adds the layers of a sequence, registered as `name`, as the next blocks. Each layer that has parameters and is not
  /// a batch norm begins a block.
  void add_blocks(const std::string& name, const Sequence& sequence);

 private:
  struct Adapted {
    std::string layer;
    at::Tensor a, b;
    double scale;
    bool out_in;  // layout of the layer's weight
  };

  void adapt(torch::nn::Module& module, const std::string& layer, DividedLinear& linear, const LowRank& adapters);
  at::Tensor run(std::size_t begin, std::size_t end, at::Tensor x) const;

  std::vector<Block> blocks_;
  BlockRunner runner_;
  std::vector<Adapted> adapted_;
  bool numbered_ = false;                       // the dropouts have their layer numbers
  std::int64_t segments_ = 0;                   // number of checkpointed segments
  std::set<std::string, std::less<>> dropped_;  // parameters and buffers of blocks that were not kept
};

}  // namespace phalanx
