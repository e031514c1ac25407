// SPDX-License-Identifier: Apache-2.0
// A graph convolutional network (Kipf and Welling 2017, Semi-Supervised Classification with Graph Convolutional
// Networks, arXiv:1609.02907), which classifies the nodes of a graph.
//
//   features [n, nodes, features] float, adjacency [n, nodes, nodes] float -> scores [n, nodes, classes]
//
//   A = D^(-1/2) (adjacency + I) D^(-1/2), where D has the sums of the rows of adjacency + I   equation 2
//   H_0 = features,  H_(i+1) = ReLU(A H_i W_i^T + b_i), without ReLU in the last layer         equations 2 and 9
//
// A sample is a graph. The adjacency matrix is symmetric, with edge weights >= 0 and without loops. Padding nodes have
// no edges, so they do not affect other nodes. Dropout precedes each layer, as in the paper. Parameters have the names,
// order and distributions of PyTorch Geometric's GCNConv: conv<i>.bias, initially 0, and conv<i>.lin.weight.
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/dropout.h"
#include "models/linear.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct GraphConvolutionConfig {
  std::vector<std::int64_t> hidden{16};
  double dropout = 0.5;

  template <class V>
  void visit(V& v) {
    v("hidden", hidden,
      "width of each hidden layer; with k of them, a node's class depends on nodes up to k + 1 edges away",
      config::at_least(1));
    v("dropout", dropout, "dropout rate of each layer's inputs", config::between(0, 0.99));
  }
};

class GraphConvolutionLayer final : public torch::nn::Module {
 public:
  GraphConvolutionLayer(std::int64_t in, std::int64_t out) {
    bias_ = register_parameter("bias", at::zeros({out}));
    lin_ = register_module("lin", Linear(torch::nn::LinearOptions(in, out).bias(false)));
    torch::nn::init::xavier_uniform_(lin_->weight);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& adjacency) {
    const at::Tensor products = lin_(x);
    return at::bmm(adjacency.to(products.scalar_type()), products) + bias_;
  }

 private:
  at::Tensor bias_;
  Linear lin_{nullptr};
};

at::Tensor normalized(const at::Tensor& adjacency) {
  const at::Tensor loops = adjacency + at::eye(adjacency.size(1), adjacency.options());
  const at::Tensor scale = loops.sum(2).rsqrt();
  return scale.unsqueeze(2) * loops * scale.unsqueeze(1);
}

class GraphConvolution final : public Network {
 public:
  GraphConvolution(const GraphConvolutionConfig& config, std::int64_t features, std::int64_t classes) {
    auto widths = config.hidden;
    widths.push_back(classes);
    for (const auto width : widths) {
      const auto number = std::to_string(layers_.size() + 1);
      dropouts_.push_back(register_module("dropout" + number, Dropout(config.dropout)));
      layers_.push_back(register_module("conv" + number, std::make_shared<GraphConvolutionLayer>(features, width)));
      features = width;
    }
  }

  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor adjacency = normalized(inputs.at(1));
    at::Tensor x = inputs.at(0);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i]->forward(dropouts_[i](i == 0 ? x : at::relu(x)), adjacency);
    }
    return {x};
  }

 private:
  std::vector<Dropout> dropouts_;
  std::vector<std::shared_ptr<GraphConvolutionLayer>> layers_;
};

std::shared_ptr<GraphConvolution> make_graph_convolution(const GraphConvolutionConfig& config, const ModelSpec& spec) {
  const auto fits = [&] {
    if (spec.inputs.size() != 2 || spec.outputs.size() != 1) return false;
    const auto& features = spec.inputs[0];
    const auto& adjacency = spec.inputs[1];
    if (features.shape.size() != 2 || features.dtype != at::kFloat || adjacency.dtype != at::kFloat) return false;
    const auto nodes = features.shape[0];
    return adjacency.shape == std::vector{nodes, nodes} && spec.outputs[0].shape.size() == 2 &&
           spec.outputs[0].shape[0] == nodes;
  };
  if (!fits()) {
    throw ConfigError(
        "model graph_convolution needs graphs, features [nodes, features] and adjacency [nodes, nodes], and "
        "a class of each node, as in the dataset \"graph_communities\"; the dataset has something else");
  }
  return std::make_shared<GraphConvolution>(config, spec.inputs[0].shape[1], spec.outputs[0].shape[1]);
}

const bool graph_convolution_registered = Models::global().add<GraphConvolutionConfig>(
    "graph_convolution", "graph convolutional network, which predicts the class of each node of a graph",
    make_graph_convolution);

}  // namespace
}  // namespace phalanx
