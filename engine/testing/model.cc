// SPDX-License-Identifier: Apache-2.0
// Models for tests of whole runs: a convolution with batch norm and dropout, a model with two inputs, and a chain.
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "framework/base/config/no_fields.h"
#include "models/batch_norm.h"
#include "models/chain_network.h"

namespace phalanx {
namespace {

struct NormsConfig {
  double dropout = 0;

  template <class V>
  void visit(V& v) {
    v("dropout", dropout, "share of features that are dropped", config::between(0, 1));
  }
};

class Norms final : public Network {
 public:
  Norms(const NormsConfig& config, const ModelSpec& spec) : config_(config) {
    static std::atomic<std::int64_t> made{0};
    conv_ =
        register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.inputs[0].shape[0], 4, 5).stride(2)));
    norm_ = register_module("norm", BatchNorm2d(4));
    fc_ = register_module("fc", torch::nn::Linear(4, spec.outputs[0].shape[0]));
    register_buffer("number", at::full({1}, ++made, at::kLong));  // differs between models
  }

  at::Tensor forward(at::Tensor input) override {
    return fc_(at::dropout(norm_(conv_(input)).relu().mean({2, 3}), config_.dropout, is_training()));
  }

 private:
  NormsConfig config_;
  torch::nn::Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

const bool testing_model_registered = Models::global().add<NormsConfig>(
    "norms_under_test", "batch norm and dropout",
    [](const NormsConfig& config, const ModelSpec& spec) { return std::make_shared<Norms>(config, spec); });

// A model of two inputs: one linear layer for each input, and one for the sum of both.
class TwoTowers final : public Network {
 public:
  explicit TwoTowers(const ModelSpec& spec) {
    one_ = register_module("one", torch::nn::Linear(spec.inputs.at(0).shape[0], 8));
    two_ = register_module("two", torch::nn::Linear(spec.inputs.at(1).shape[0], 8));
    both_ = register_module("both", torch::nn::Linear(8, spec.outputs[0].shape[0]));
  }

  Tensors outputs(const Tensors& inputs) override { return {both_((one_(inputs.at(0)) + two_(inputs.at(1))).tanh())}; }

 private:
  torch::nn::Linear one_{nullptr}, two_{nullptr}, both_{nullptr};
};

const bool towers_registered = Models::global().add<NoFields>(
    "two_towers_under_test", "two inputs",
    [](const NoFields&, const ModelSpec& spec) { return std::make_shared<TwoTowers>(spec); });

// A chain of three blocks, which no other file names.
class Steps final : public RecomputableChain {
 public:
  explicit Steps(const ModelSpec& spec) {
    std::int64_t inputs = 1;
    for (const auto length : spec.inputs.at(0).shape) inputs *= length;
    first_ = register_module("first", torch::nn::Linear(inputs, 8));
    second_ = register_module("second", torch::nn::Linear(8, 8));
    last_ = register_module("last", torch::nn::Linear(8, spec.outputs[0].shape[0]));
    add_block("first", {"first"}, [this](const at::Tensor& x) { return first_(x.flatten(1)).tanh(); });
    add_block("second", {"second"}, [this](const at::Tensor& x) { return second_(x).tanh(); });
    add_block("last", {"last"}, [this](const at::Tensor& x) { return last_(x); });
  }

 private:
  torch::nn::Linear first_{nullptr}, second_{nullptr}, last_{nullptr};
};

const bool chain_registered = Models::global().add<NoFields>(
    "chain_under_test", "a chain of blocks",
    [](const NoFields&, const ModelSpec& spec) { return std::make_shared<Steps>(spec); });

}  // namespace
}  // namespace phalanx
