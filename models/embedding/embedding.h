// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/registry.h"
#include "framework/base/sample_spec.h"

namespace phalanx {

/// The embeddings that a model needs.
struct EmbeddingSpec {
  std::int64_t features = 0;  // categorical features of a sample
  std::int64_t keys = 0;      // ids of each feature: [0, keys)
  std::int64_t dim = 0;       // elements of a row
};

/// Maps the ids of categorical features to rows of numbers, as part of a network.
class Embedding : public torch::nn::Module {
 public:
  /// Maps ids [n, features] int64 to [n, features, dim] float32, differentiable.
  virtual at::Tensor forward(const at::Tensor& ids) = 0;
};

struct EmbeddingTraits {
  bool parameter_servers = false;  // rows are on parameter servers
};

/// Places of embeddings by name.
using Embeddings = Registry<std::shared_ptr<Embedding>(const EmbeddingSpec&), EmbeddingTraits>;

/// Returns the keys of a sample's ids in the common key space of all features: id i of feature f has the key f * keys +
/// i. [n, features].
at::Tensor keys_of(const at::Tensor& ids, const EmbeddingSpec& spec);

/// Inputs of a recommendation model: dense [n, numbers] float32 and ids [n, features] int64. The output is a logit [n].
struct RecommenderInputs {
  std::int64_t numbers = 0, features = 0, keys = 0;
};

/// Throws ConfigError for other inputs or outputs.
RecommenderInputs recommender_inputs(const std::string& model, const ModelSpec& spec);

}  // namespace phalanx
