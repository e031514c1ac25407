// SPDX-License-Identifier: Apache-2.0
// A two-tower model (Yi et al. 2019, Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations;
// without the correction, since clicks are not sampled). Inputs dense [n, numbers] float and ids [n, features] int64,
// output logit [n].
//
//   u = user(dense, rows of the user's ids)    [n, width]
//   v = item(rows of the item's ids)           [n, width]
//   logit = u . v + bias
//
// The first `user_features` ids are the user's. Parameters bias, user.fc<i>, item.fc<i> and the parameters of the
// embeddings.
#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/embedding/embedding.h"
#include "models/network.h"
#include "models/perceptron.h"

namespace phalanx {
namespace {

struct TwoTowerConfig {
  std::int64_t dim = 16;
  std::int64_t user_features = 1;
  std::vector<std::int64_t> layers{64, 32};
  Embeddings::Choice embeddings{"local"};

  template <class V>
  void visit(V& v) {
    v("dim", dim, "elements of an embedding", config::between(1, 4096));
    v("user_features", user_features, "number of ids of the user, which come before those of the item",
      config::at_least(1));
    v("layers", layers, "width of each layer of a tower; the last one is the size of the vectors", config::at_least(1));
    v("embeddings", embeddings, "where the embeddings are");
  }
};

class TwoTower final : public Network {
 public:
  TwoTower(const TwoTowerConfig& config, const RecommenderInputs& inputs) : of_user_(config.user_features) {
    bias_ = register_parameter("bias", at::zeros({1}));
    const auto of_item = inputs.features - of_user_;
    user_ = register_module("user",
                            std::make_shared<Perceptron>(inputs.numbers + of_user_ * config.dim, config.layers, false));
    item_ = register_module("item", std::make_shared<Perceptron>(of_item * config.dim, config.layers, false));
    embedding_ = register_module(
        "embedding", config.embeddings.make({.features = inputs.features, .keys = inputs.keys, .dim = config.dim}));
  }

  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor rows = embedding_->forward(inputs.at(1));
    const at::Tensor of_user = rows.narrow(1, 0, of_user_).flatten(1);
    const at::Tensor of_item = rows.narrow(1, of_user_, rows.size(1) - of_user_).flatten(1);
    const at::Tensor user = user_->forward(at::concat({inputs.at(0), of_user}, 1));
    return {(user * item_->forward(of_item)).sum(1) + bias_};
  }

 private:
  std::int64_t of_user_;
  at::Tensor bias_;
  std::shared_ptr<Perceptron> user_, item_;
  std::shared_ptr<Embedding> embedding_;
};

std::shared_ptr<TwoTower> make_two_tower(const TwoTowerConfig& config, const ModelSpec& spec) {
  const auto inputs = recommender_inputs("two_tower", spec);
  if (config.user_features >= inputs.features) {
    throw ConfigError("model two_tower: user_features " + std::to_string(config.user_features) + " of " +
                      std::to_string(inputs.features) + " leaves none for the item; use a smaller number");
  }
  if (config.layers.empty()) throw ConfigError("model two_tower: layers is empty; name at least one width");
  return std::make_shared<TwoTower>(config, inputs);
}

const bool two_tower_registered =
    Models::global().add<TwoTowerConfig>("two_tower", "a tower for the user and one for the item", make_two_tower);

}  // namespace
}  // namespace phalanx
