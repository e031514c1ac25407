// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/network.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace phalanx::bench_train {
namespace {

namespace nn = torch::nn;

class Mlp final : public Network {
 public:
  explicit Mlp(std::int64_t classes) : fc3_(register_module("fc3", nn::Linear(512, classes))) {}

  at::Tensor forward(const at::Tensor& x) override { return fc3_(at::relu(fc2_(at::relu(fc1_(x.flatten(1)))))); }

 private:
  nn::Linear fc1_{register_module("fc1", nn::Linear(784, 512))}, fc2_{register_module("fc2", nn::Linear(512, 512))};
  nn::Linear fc3_;
};

class LeNet final : public Network {
 public:
  LeNet(std::int64_t channels, std::int64_t classes)
      : conv1_(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(channels, 6, 5).padding(2)))),
        fc3_(register_module("fc3", nn::Linear(84, classes))) {}

  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor once = at::max_pool2d(at::relu(conv1_(x)), 2);
    const at::Tensor twice = at::max_pool2d(at::relu(conv2_(once)), 2).flatten(1);
    return fc3_(at::relu(fc2_(at::relu(fc1_(twice)))));
  }

 private:
  nn::Conv2d conv1_, conv2_{register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 16, 5)))};
  nn::Linear fc1_{register_module("fc1", nn::Linear(400, 120))}, fc2_{register_module("fc2", nn::Linear(120, 84))};
  nn::Linear fc3_;
};

constexpr std::int64_t kWidth = 128, kHeads = 4, kLayers = 4;

class Block final : public nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor attended = x + attention(ln_1_(x));
    return attended + down_(at::gelu(up_(ln_2_(attended)), "tanh"));
  }

 private:
  at::Tensor attention(const at::Tensor& x) {
    const auto rows = x.size(0), length = x.size(1);
    const auto parts = c_attn_(x).chunk(3, 2);
    const auto heads = [&](const at::Tensor& part) { return part.view({rows, length, kHeads, -1}).transpose(1, 2); };
    const at::Tensor query = heads(parts[0]), key = heads(parts[1]), value = heads(parts[2]);
    const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
    const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
    const at::Tensor scores =
        (at::matmul(query, key.transpose(2, 3)) * scale).masked_fill(later, -std::numeric_limits<double>::infinity());
    return c_proj_(at::matmul(scores.softmax(-1), value).transpose(1, 2).reshape({rows, length, -1}));
  }

  static nn::LayerNorm norm() { return nn::LayerNorm(nn::LayerNormOptions({kWidth})); }

  nn::LayerNorm ln_1_{register_module("ln_1", norm())}, ln_2_{register_module("ln_2", norm())};
  nn::Linear c_attn_{register_module("c_attn", nn::Linear(kWidth, 3 * kWidth))};
  nn::Linear c_proj_{register_module("c_proj", nn::Linear(kWidth, kWidth))};
  nn::Linear up_{register_module("up", nn::Linear(kWidth, 4 * kWidth))};
  nn::Linear down_{register_module("down", nn::Linear(4 * kWidth, kWidth))};
};

// GPT-2 over characters. Its last layer shares the weights of the embedding.
class CharLm final : public Network {
 public:
  CharLm(std::int64_t context, std::int64_t classes)
      : wte_(register_module("wte", nn::Embedding(classes, kWidth))),
        wpe_(register_module("wpe", nn::Embedding(context, kWidth))) {
    for (auto& block : blocks_) {
      block = register_module("block" + std::to_string(&block - blocks_.data()), std::make_shared<Block>());
    }
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* linear = module->as<nn::Linear>()) nn::init::normal_(linear->weight, 0, 0.02);
      if (auto* embedding = module->as<nn::Embedding>()) nn::init::normal_(embedding->weight, 0, 0.02);
    }
  }

  at::Tensor forward(const at::Tensor& text) override {
    at::Tensor x = wte_(text) + wpe_->weight.narrow(0, 0, text.size(1));
    for (auto& block : blocks_) x = block->forward(x);
    return at::linear(ln_f_(x), wte_->weight);
  }

 private:
  nn::Embedding wte_, wpe_;
  std::array<std::shared_ptr<Block>, kLayers> blocks_;
  nn::LayerNorm ln_f_{register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions({kWidth})))};
};

}  // namespace

std::shared_ptr<Network> make_network(const std::string& name, const std::vector<std::int64_t>& input,
                                      std::int64_t classes) {
  if (name == "mlp") return std::make_shared<Mlp>(classes);
  if (name == "lenet") return std::make_shared<LeNet>(input.at(0), classes);
  if (name == "char_lm") return std::make_shared<CharLm>(input.at(0), classes);
  throw std::invalid_argument("there is no network " + name);
}

}  // namespace phalanx::bench_train
