#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/models.h"  // how a model registers itself

namespace phalanx {

/// A network that maps a batch of inputs to outputs. Its parameters and buffers are those of torch::nn::Module.
class Model : public torch::nn::Module {
 public:
  virtual at::Tensor forward(at::Tensor input) = 0;  // [n, ...] -> [n, ...]

  /// From now on, in training: cuts the model's blocks into `segments` runs, at most one for each block, keeps of each
  /// run only what goes in, and computes the rest again in backward (framework/parallel/checkpointed.h). False: the
  /// model cannot.
  virtual bool checkpoint_activations(std::int64_t /*segments*/) { return false; }
};

/// The parameters of a model with their names, in its order.
inline std::vector<std::pair<std::string, at::Tensor>> named_parameters(const Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& parameter : model.named_parameters()) named.emplace_back(parameter.key(), parameter.value());
  return named;
}

/// The same of its buffers.
inline std::vector<std::pair<std::string, at::Tensor>> named_buffers(const Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& buffer : model.named_buffers()) named.emplace_back(buffer.key(), buffer.value());
  return named;
}

}  // namespace phalanx
