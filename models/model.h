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

/// The division of a model among the ranks of a tensor group: names of layers, where * matches any part of a name, and
/// the style of each layer (models/tensor_parallel.h), as in {"transformer.h.*.attn.c_attn", "column"}. Layers that no
/// pattern matches stay whole.
using TensorPlan = std::map<std::string, std::string>;

/// A network as seen by training: a function of a batch of inputs, with learned tensors (parameters) and other tensors
/// (buffers, such as running statistics). Not thread-safe.
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

  /// Returns the model as a chain of blocks: forward(input) passes the input through all blocks in order. Returns an
  /// empty list if the model is not a chain, for example because it has several inputs. Always returns the same blocks.
  virtual const std::vector<Block>& blocks() const {
    static const std::vector<Block> none;
    return none;
  }

  /// From now on, forward() calls `runner` for each block instead of Block::forward. The model must have blocks. Only
  /// one thread at a time may then call forward().
  virtual void run_blocks_by(BlockRunner /*runner*/) { throw std::logic_error("the model has no blocks"); }

  /// Keeps the parameters of these blocks (ascending indices) and frees the memory of all others. From now on,
  /// named_parameters() and named_buffers() return only the tensors of these blocks, and the other blocks and forward()
  /// must not be called. May be called once, after the model has been divided.
  virtual void keep_blocks(const std::vector<std::size_t>& /*blocks*/) {
    throw std::logic_error("the model has no blocks");
  }

  /// From now on, in training, divides the blocks between the first and the last one into `segments` runs, at most one
  /// per block. Only the input of each run is kept; the rest is recomputed in backward
  /// (framework/parallel/checkpointed.h). Returns false if the model does not support this.
  virtual bool checkpoint_activations(std::int64_t /*segments*/) { return false; }

  /// Returns the plan that suits the model, or an empty plan if it has none.
  virtual TensorPlan tensor_plan() const { return {}; }

  /// Keeps this rank's part of the layers that `plan` names; from now on, the model computes together with the other
  /// ranks of `group`. Returns the placements of the divided parameters; all others stay whole on each rank. Must be
  /// called once, before the model is used, with the same plan on all ranks. Throws ConfigError for a pattern that
  /// matches no layer, for a layer that two patterns match, and for a layer that cannot be divided in this style.
  virtual Placements divide(const TensorPlan& plan, const CommunicatorPtr& group) = 0;

  /// Does the same for layers with experts, which are divided among the ranks of `experts`. `batch` has the ranks that
  /// share the global batch, over which the load of experts is balanced. Returns no placements if nothing is divided.
  virtual Placements divide_experts(const CommunicatorPtr& /*experts*/, const CommunicatorPtr& /*batch*/) { return {}; }

  /// Divides the activations of a model that was divided by its own plan. From now on, each rank of `group`, the tensor
  /// group, has an equal part of the positions between divided layers (models/tensor_parallel.h). Inputs and outputs
  /// stay whole. Returns false if the model does not support this.
  virtual bool share_positions(const CommunicatorPtr& /*group*/) { return false; }

  /// Overlaps the exchange of these positions with the matrix products of the layers. Must be called after
  /// share_positions().
  virtual void overlap_exchange() {}

  /// From now on, inputs and outputs have only this rank's positions of each sequence, as chosen by take_positions()
  /// (framework/parallel/sequence_part.h), and the ranks of `group` compute together. Must be called once, before the
  /// model is used, on all ranks. Returns false if the model does not support this. Throws ConfigError if an option of
  /// the model prevents it.
  virtual bool divide_sequence(const CommunicatorPtr& /*group*/) { return false; }

  /// From now on, if ranks divide the class scores that are the model's only output, the output has only the scores of
  /// this rank's classes; the result describes them. Returns null if the output keeps all scores.
  virtual ClassPartsPtr leave_scores_divided() { return nullptr; }

  /// From now on, in evaluation, the inputs of a language model are the tokens that follow the tokens in `cache`, to
  /// which they are added, and the outputs are those tokens' outputs. With null, inputs are whole sequences again. The
  /// cache must live until then. Returns false if the model does not support this.
  virtual bool go_on_from(KeyValueCache* /*cache*/) { return false; }

  /// Returns the term that the last forward in training adds to the loss, such as the balance loss of experts, as the
  /// mean over this rank's samples. Returns an undefined tensor if there is none. If ranks divide the positions of a
  /// sample, the result is this rank's part of that mean.
  virtual at::Tensor take_auxiliary_loss() { return {}; }

  /// From now on, all batch-norm layers compute mean and variance over the samples that `statistics` describes. Returns
  /// the number of these layers. Throws ConfigError if one of them does not support it.
  virtual std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) = 0;

 private:
  static std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : named) tensors.push_back(tensor);
    return tensors;
  }
};

/// Models by name. A factory gets the inputs and outputs that the task requires and throws ConfigError if the model
/// cannot have them. Initial values are drawn from LibTorch's default generator.
using Models = Registry<std::shared_ptr<Model>(const ModelSpec&)>;

}  // namespace phalanx
