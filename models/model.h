// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "framework/base/batch.h"
#include "framework/base/named_tensors.h"
#include "framework/base/registry.h"
#include "framework/base/sample_spec.h"
#include "models/model_traits.h"

namespace phalanx {

/// A network as seen by training: a function of a batch of inputs, with learned tensors (parameters) and other tensors
/// (buffers, such as running statistics). Not thread-safe.
///
/// This is what every model implements. A model that supports more also derives from optional interfaces, for which
/// callers ask with as():
///
///   BlockChain               a chain of blocks, which pipelines and sharded parameters need
///   ActivationCheckpointing  recomputes activations in backward
///   TensorParallel           divides layers among ranks
///   SequenceParallel         divides the activations between such layers by position
///   ContextParallel          divides sequences among ranks
///   ExpertParallel           divides experts among ranks
///   SynchronizedBatchNorm    computes batch statistics over all ranks
///   AuxiliaryLoss            adds a term to the loss
///   IncrementalDecoding      continues sequences with a key-value cache
///   Generative               generates samples from noise
///   Published                reads weights that Hugging Face publishes (models/published_settings.h)
///
/// Most models derive from Network (models/network.h) or RecomputableChain (models/chain_network.h), which implement
/// some of these interfaces.
class Model {
 public:
  virtual ~Model() = default;

  /// Maps the tensors of ModelSpec::inputs, each [n, ...], to the tensors of ModelSpec::outputs, each [n, ...].
  virtual Tensors outputs(const Tensors& inputs) = 0;

  /// Returns the first output of a model that takes one tensor.
  at::Tensor forward(const at::Tensor& input) { return outputs({input}).at(0); }

  virtual void train(bool on = true) = 0;  // true: training mode (dropout, batch statistics), false: evaluation mode
  void eval() { train(false); }

  /// Returns the model's own tensors, not copies, always in the same order.
  virtual NamedTensors named_parameters() const = 0;
  virtual NamedTensors named_buffers() const = 0;
  std::vector<at::Tensor> parameters() const { return tensors_of(named_parameters()); }
  std::vector<at::Tensor> buffers() const { return tensors_of(named_buffers()); }

 private:
  static std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : named) tensors.push_back(tensor);
    return tensors;
  }
};

/// Returns the optional interface of a model, or null if the model does not implement it. A model that wraps another
/// one has only the interfaces that the wrapper itself implements.
///
///     if (auto* const chain = as<BlockChain>(model)) chain->set_block_runner(runner);
template <class Interface>
Interface* as(Model& model) {
  return dynamic_cast<Interface*>(&model);
}
template <class Interface>
const Interface* as(const Model& model) {
  return dynamic_cast<const Interface*>(&model);
}

/// Models by name. A factory gets the inputs and outputs that the task requires and throws ConfigError if the model
/// cannot have them. Initial values are drawn from LibTorch's default generator. The traits of a model follow from the
/// class to which its factory returns a pointer.
using Models = Registry<std::shared_ptr<Model>(const ModelSpec&), ModelTraits>;

}  // namespace phalanx
