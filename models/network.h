#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "models/model.h"

namespace phalanx {

/// The base class of models made of torch::nn modules: they register these in their constructor, and override forward()
/// where they make one tensor of one, outputs() otherwise. Names and order of parameters and buffers are those of
/// torch::nn::Module.
class Network : public torch::nn::Module, public Model {
 public:
  virtual at::Tensor forward(at::Tensor input);  // [n, ...] -> [n, ...]

  Tensors outputs(const Tensors& inputs) override;

  void train(bool on = true) override { torch::nn::Module::train(on); }
  using Model::eval;

  NamedTensors named_parameters() const override;
  NamedTensors named_buffers() const override;
  using Model::buffers;
  using Model::parameters;

  /// Layers must implement TensorParallel.
  Placements divide(const TensorPlan& plan, const CommunicatorPtr& group) override;

  /// Layers must be of models/batch_norm.h.
  std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) override;
};

}  // namespace phalanx
