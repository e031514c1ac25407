// Multi-layer perceptron with ReLU: input [n, ...] float -> logits [n, classes]. Parameters fc<i>.{weight, bias}.
#include <ATen/ops/relu.h>

#include <numeric>
#include <string>
#include <vector>

#include "models/linear.h"
#include "models/network.h"
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

class Mlp final : public Network {
 public:
  Mlp(const MlpConfig& config, const SampleSpec& sample) {
    auto width = std::accumulate(sample.input.begin(), sample.input.end(), std::int64_t{1}, std::multiplies<>());
    for (const auto next : config.hidden) {
      add_layer(width, next);
      width = next;
    }
    add_layer(width, sample.classes);
  }

  at::Tensor forward(at::Tensor input) override {
    at::Tensor x = input.flatten(1);
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) x = at::relu(layers_[i](x));
    return layers_.back()(x);
  }

 private:
  void add_layer(std::int64_t inputs, std::int64_t outputs) {
    const auto name = "fc" + std::to_string(layers_.size() + 1);
    layers_.push_back(register_module(name, Linear(inputs, outputs)));
  }

  std::vector<Linear> layers_;
};

std::shared_ptr<Model> make_mlp(const MlpConfig& config, const SampleSpec& sample) {
  if (sample.dtype != at::kFloat) refuse_sample("mlp", "numbers", sample);
  return std::make_shared<Mlp>(config, sample);
}

const bool registered = Models::global().add<MlpConfig>("mlp", "multilayer perceptron", make_mlp);

}  // namespace
}  // namespace phalanx
