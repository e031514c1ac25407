// SPDX-License-Identifier: Apache-2.0
// A deep learning recommendation model (Naumov et al. 2019, Deep Learning Recommendation Model for Personalization and
// Recommendation Systems). Inputs dense [n, numbers] float and ids [n, features] int64, output logit [n].
//
//   x = bottom(dense)                                [n, dim]
//   e = rows of the ids                              [n, features, dim]
//   p = inner products of all pairs of x and e       [n, (features + 1) features / 2]
//   logit = top(x, p)
//
// Parameters bottom.fc<i>, top.fc<i> and the parameters of the embeddings.
#include <ATen/ops/bmm.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/tril_indices.h>

#include <memory>
#include <vector>

#include "models/embedding/embedding.h"
#include "models/network.h"
#include "models/perceptron.h"

namespace phalanx {
namespace {

struct DlrmConfig {
  std::int64_t dim = 16;
  std::vector<std::int64_t> bottom{64};
  std::vector<std::int64_t> top{64, 32};
  Embeddings::Choice embeddings{"local"};

  template <class V>
  void visit(V& v) {
    v("dim", dim, "elements of an embedding", config::between(1, 4096));
    v("bottom", bottom, "width of each hidden layer before the interaction", config::at_least(1));
    v("top", top, "width of each hidden layer after it", config::at_least(1));
    v("embeddings", embeddings, "where the embeddings are");
  }
};

std::vector<std::int64_t> with_last(std::vector<std::int64_t> widths, std::int64_t last) {
  widths.push_back(last);
  return widths;
}

class Dlrm final : public Network {
 public:
  Dlrm(const DlrmConfig& config, const RecommenderInputs& inputs) {
    const auto vectors = inputs.features + 1, pairs = vectors * inputs.features / 2;
    bottom_ = register_module("bottom",
                              std::make_shared<Perceptron>(inputs.numbers, with_last(config.bottom, config.dim), true));
    top_ = register_module("top", std::make_shared<Perceptron>(config.dim + pairs, with_last(config.top, 1), false));
    embedding_ = register_module(
        "embedding", config.embeddings.make({.features = inputs.features, .keys = inputs.keys, .dim = config.dim}));
    const at::Tensor places = at::tril_indices(vectors, vectors, -1);
    pairs_ = places[0] * vectors + places[1];
  }

  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor x = bottom_->forward(inputs.at(0));
    const at::Tensor vectors = at::concat({x.unsqueeze(1), embedding_->forward(inputs.at(1)).to(x.scalar_type())}, 1);
    const at::Tensor products = at::bmm(vectors, vectors.transpose(1, 2)).flatten(1).index_select(1, pairs_);
    return {top_->forward(at::concat({x, products}, 1)).squeeze(1)};
  }

 private:
  std::shared_ptr<Perceptron> bottom_, top_;
  std::shared_ptr<Embedding> embedding_;
  at::Tensor pairs_;  // positions in the matrix of all products
};

const bool dlrm_registered = Models::global().add<DlrmConfig>(
    "dlrm", "deep learning recommendation model", [](const DlrmConfig& config, const ModelSpec& spec) {
      return std::make_shared<Dlrm>(config, recommender_inputs("dlrm", spec));
    });

}  // namespace
}  // namespace phalanx
