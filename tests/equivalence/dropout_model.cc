// SPDX-License-Identifier: Apache-2.0
#include "tests/equivalence/dropout_model.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/ones_like.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "models/network.h"

namespace phalanx {
namespace {

constexpr std::int64_t kHidden = 24;

struct DropoutConfig {
  double dropout = 0.5;

  template <class V>
  void visit(V& v) {
    v("dropout", dropout, "share of the hidden layer that is dropped", config::between(0, 1));
  }
};

class Dropout final : public Network {
 public:
  Dropout(const DropoutConfig& config, const ModelSpec& spec) : rate_(config.dropout) {
    std::int64_t inputs = 1;
    for (const auto size : spec.inputs[0].shape) inputs *= size;
    fc1_ = register_module("fc1", torch::nn::Linear(inputs, kHidden));
    fc2_ = register_module("fc2", torch::nn::Linear(kHidden, spec.outputs[0].shape[0]));
  }

  at::Tensor forward(at::Tensor input) override {
    const at::Tensor hidden = fc1_(input.flatten(1)).relu();
    const at::Tensor mask = at::dropout(at::ones_like(hidden), rate_, is_training());
    if (is_training()) testing::dropped().push_back(mask.detach());
    return fc2_(hidden * mask);
  }

 private:
  double rate_;
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
};

const bool dropout_model_registered = Models::global().add<DropoutConfig>(
    "dropout_under_test", "dropout",
    [](const DropoutConfig& config, const ModelSpec& spec) { return std::make_shared<Dropout>(config, spec); });

}  // namespace

std::vector<at::Tensor>& testing::dropped() {
  static std::vector<at::Tensor> all;
  return all;
}

}  // namespace phalanx
