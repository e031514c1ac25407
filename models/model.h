// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/batch.h"
#include "framework/base/named_tensors.h"
#include "framework/base/registry.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/class_parts.h"
#include "framework/parallel/placement.h"
#include "models/block.h"

namespace phalanx {

class KeyValueCache;     // models/key_value_cache.h
struct BatchStatistics;  // framework/parallel/sync_batch_norm.h

/// The division of a model among the ranks of a tensor group: names of layers, where * is any part of a name, and the
/// style of each (models/tensor_parallel.h): {"transformer.h.*.attn.c_attn", "column"}. Layers that no pattern matches
/// stay whole.
using TensorPlan = std::map<std::string, std::string>;

/// A network as training sees it: a function of a batch of inputs, with tensors that are learned (parameters) and
/// tensors that are not (buffers: running statistics). One thread at a time.
class Model {
 public:
  virtual ~Model() = default;

  /// The tensors of ModelSpec::inputs, each [n, ...], to those of ModelSpec::outputs, each [n, ...].
  virtual Tensors outputs(const Tensors& inputs) = 0;

  /// Returns the first output of a model that takes one tensor.
  at::Tensor forward(const at::Tensor& input) { return outputs({input}).at(0); }

  virtual void train(bool on = true) = 0;  // training mode (dropout, statistics of the batch) or evaluation
  void eval() { train(false); }

  /// The model's own tensors, not copies, in an order that is always the same.
  virtual NamedTensors named_parameters() const = 0;
  virtual NamedTensors named_buffers() const = 0;
  std::vector<at::Tensor> parameters() const { return tensors_of(named_parameters()); }
  std::vector<at::Tensor> buffers() const { return tensors_of(named_buffers()); }

  /// The model as a chain of blocks: forward(input) is the last one's of the one's before it, and so on. Empty: it is
  /// no chain, as a model of several inputs. Always the same ones.
  virtual const std::vector<Block>& blocks() const {
    static const std::vector<Block> none;
    return none;
  }

  /// From now on forward() calls `runner` for each block, in place of Block::forward. Of a model with blocks; several
  /// threads may not be inside of forward() then.
  virtual void run_blocks_by(BlockRunner /*runner*/) { throw std::logic_error("the model has no blocks"); }

  /// Keeps the parameters of these blocks, ascending, and lets go of the memory of all others: named_parameters() and
  /// named_buffers() are of these alone from now on, and nobody may call the other blocks, or forward(). Once, and
  /// after the model was divided.
  virtual void keep_blocks(const std::vector<std::size_t>& /*blocks*/) {
    throw std::logic_error("the model has no blocks");
  }

  /// From now on, in training: cuts the blocks between the first and the last into `segments` runs, at most one for
  /// each block, keeps of each run only what goes in, and computes the rest again in backward
  /// (framework/parallel/checkpointed.h). False: the model cannot.
  virtual bool checkpoint_activations(std::int64_t /*segments*/) { return false; }

  /// The plan that suits the model; empty: it has none.
  virtual TensorPlan tensor_plan() const { return {}; }

  /// Keeps this rank's part of the layers that `plan` names, and computes together with the other ranks of `group` from
  /// now on. The parameters that are divided; all others stay whole on each rank. Before the model is used, once, alike
  /// on all ranks. Throws ConfigError for a pattern that matches no layer, a layer that two match, and one that cannot
  /// be divided so.
  virtual Placements divide(const TensorPlan& plan, const CommunicatorPtr& group) = 0;

  /// The same of layers with experts, which the ranks of `experts` divide. `batch`: the ranks that have a part of the
  /// global batch, over which experts are kept in balance. Empty where nothing is divided.
  virtual Placements divide_experts(const CommunicatorPtr& /*experts*/, const CommunicatorPtr& /*batch*/) { return {}; }

  /// Divides the activations of a model that was divided by its own plan: from now on each rank of `group`, the tensor
  /// group, has an equal part of the positions between divided layers (models/tensor_parallel.h). Inputs and outputs
  /// stay as they are. Returns false if the model cannot do so.
  virtual bool share_positions(const CommunicatorPtr& /*group*/) { return false; }

  /// After share_positions(): these positions are exchanged while the layers' products are computed.
  virtual void overlap_exchange() {}

  /// From now on inputs and outputs are of this rank's positions of each sequence alone, as take_positions() gives them
  /// (framework/parallel/sequence_part.h), and the ranks of `group` compute together. Before the model is used, once,
  /// alike on all ranks. False: the model cannot. Throws ConfigError where an option of the model is in the way.
  virtual bool divide_sequence(const CommunicatorPtr& /*group*/) { return false; }

  /// From now on, where ranks divide the scores of classes that the one output has, it has those of this rank's classes
  /// alone: as the result says. Null: it goes on to have all.
  virtual ClassPartsPtr leave_scores_divided() { return nullptr; }

  /// From now on, in evaluation, inputs of a language model are of the tokens behind those that `cache` has, to which
  /// they are added, and outputs of the same; null: of whole sequences again. The cache must live until then. False:
  /// the model cannot.
  virtual bool go_on_from(KeyValueCache* /*cache*/) { return false; }

  /// Returns the term that the last forward in training adds to the loss, such as one that keeps experts in balance, as
  /// the mean over this rank's samples; undefined if there is none. If ranks divide the positions of a sample, it is
  /// this rank's part of that mean.
  virtual at::Tensor take_auxiliary_loss() { return {}; }

  /// From now on all layers of batch norm compute mean and variance over the samples that `statistics` describes.
  /// Returns how many layers these are. Throws ConfigError where one of them cannot.
  virtual std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) = 0;

 private:
  static std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : named) tensors.push_back(tensor);
    return tensors;
  }
};

/// Models by name. A factory gets what the task feeds a model with and wants of it, and throws ConfigError where that
/// does not fit. Initial values are drawn from LibTorch's default generator.
using Models = Registry<std::shared_ptr<Model>(const ModelSpec&)>;

}  // namespace phalanx
