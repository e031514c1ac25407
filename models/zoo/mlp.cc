// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron with ReLU. Input [n, ...] float, output [n, ...] float, such as logits [n, classes].
// Parameters fc<i>.{weight, bias}.
#include <ATen/ops/relu.h>

#include <numeric>
#include <string>
#include <vector>

#include "models/chain_network.h"
#include "models/linear.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

struct MlpConfig {
  std::vector<std::int64_t> hidden{128};

  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "width of each hidden layer", config::at_least(1));
  }
};

class Mlp final : public RecomputableChain {
 public:
  Mlp(const MlpConfig& config, const TensorSpec& input, const TensorSpec& output) : shape_(output.shape) {
    auto width = elements_of(input);
    for (const auto next : config.hidden) {
      add_layer(width, next);
      width = next;
    }
    add_layer(width, elements_of(output));
    shape_.insert(shape_.begin(), -1);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      add_block(name_of(i), {name_of(i)}, [this, i](const at::Tensor& x) { return apply(i, x); });
    }
  }

  // Alternates column and row, so that only every other layer ends with an exchange.
  TensorPlan tensor_plan() const override {
    TensorPlan plan;
    for (std::size_t i = 0; i < layers_.size(); ++i) plan[name_of(i)] = i % 2 == 0 ? "column" : "row";
    if (layers_.size() % 2 == 1) plan[name_of(layers_.size() - 1)] = "column_gathered";
    return plan;
  }

 private:
  static std::string name_of(std::size_t layer) { return "fc" + std::to_string(layer + 1); }

  static std::int64_t elements_of(const TensorSpec& tensor) {
    return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
  }

  at::Tensor apply(std::size_t layer, const at::Tensor& input) {
    const at::Tensor x = layers_[layer](layer == 0 ? input.flatten(1) : input);
    if (layer + 1 < layers_.size()) return at::relu(x);
    return shape_.size() == 2 ? x : x.view(shape_);
  }

  void add_layer(std::int64_t inputs, std::int64_t outputs) {
    layers_.push_back(register_module(name_of(layers_.size()), Linear(inputs, outputs)));
  }

  std::vector<std::int64_t> shape_;  // of the output, with -1 for the rows
  std::vector<Linear> layers_;
};

std::shared_ptr<Mlp> make_mlp(const MlpConfig& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("mlp", spec);
  if (input.dtype != at::kFloat) refuse_sample("mlp", "numbers", input);
  return std::make_shared<Mlp>(config, input, output);
}

const bool mlp_registered = Models::global().add<MlpConfig>("mlp", "multilayer perceptron", make_mlp);

}  // namespace
}  // namespace phalanx
