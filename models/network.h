// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/synchronized_batch_norm.h"
#include "models/tensor_parallel.h"

namespace phalanx {

struct LowRank;
class TensorParallelLinear;

/// The base class of models made of torch::nn modules, which are registered in the constructor. A model overrides
/// forward() if it has one input and one output, and outputs() otherwise. Models that are chains of blocks derive from
/// RecomputableChain (models/chain_network.h). Names and order of parameters and buffers are as in torch::nn::Module.
class Network : public torch::nn::Module, public Model, public TensorParallel, public SynchronizedBatchNorm {
 public:
  virtual at::Tensor forward(at::Tensor input);  // [n, ...] -> [n, ...]

  Tensors outputs(const Tensors& inputs) override;

  /// Throws std::logic_error in training if a layer has experts, but the network does not implement ExpertParallel.
  void train(bool on = true) override;
  using Model::eval;

  NamedTensors named_parameters() const override;
  NamedTensors named_buffers() const override;
  using Model::buffers;
  using Model::parameters;

  /// Layers that `plan` names must implement TensorParallelLayer.
  Placements partition_layers(const TensorPlan& plan, const CommunicatorPtr& group) override;

  /// Batch-norm layers must be of the class in models/batch_norm.h.
  std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) override;

  /// See models/low_rank.h.
  std::int64_t add_adapters(const LowRank& adapters);
  NamedTensors merged() const;

 protected:
  /// Called after parameters of these names were added to a layer, the name of whose weight is `weight`.
  virtual void on_adapted(const std::string& /*weight*/, const std::vector<std::string>& /*added*/) {}

 private:
  struct Adapted {
    std::string layer;
    at::Tensor a, b;
    double scale;
    bool out_in;  // layout of the layer's weight
  };

  void prepare_layers();
  void adapt(torch::nn::Module& module, const std::string& layer, TensorParallelLinear& linear,
             const LowRank& adapters);

  std::vector<Adapted> adapted_;
  bool prepared_ = false;  // prepare_layers() was called
};

}  // namespace phalanx
