// SPDX-License-Identifier: Apache-2.0
// ConvNeXt (Liu et al. 2022, A ConvNet for the 2020s, section 3). Input [n, c, h, w] float, output logits [n, classes].
// Parameters features.N and classifier.{0,2}, with torchvision's names and initial values.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mean.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/drop_path.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/layer_norm.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct ConvNextConfig {
  std::int64_t width = 96;
  double layer_scale = 1e-6;
  double stochastic_depth = 0.1;

  template <class V>
  void visit(V& v) {
    v("width", width, "channels of the first stage; each later one doubles them", config::at_least(1));
    v("layer_scale", layer_scale, "initial factor of what a block adds", config::above(0));
    v("stochastic_depth", stochastic_depth, "probability of skipping the last block; lower for earlier ones",
      config::between(0, 0.99));
  }
};

struct TinyConfig : ConvNextConfig {};
struct SmallConfig : ConvNextConfig {
  SmallConfig() { stochastic_depth = 0.4; }
};
struct BaseConfig : ConvNextConfig {
  BaseConfig() { width = 128, stochastic_depth = 0.5; }
};

using Blocks = std::array<int, 4>;  // number of blocks in each stage

constexpr double kEps = 1e-6;

// Layer norm over the channels of [n, c, h, w].
class ChannelNorm final : public torch::nn::LayerNormImpl {
 public:
  explicit ChannelNorm(std::int64_t width) : LayerNormImpl(torch::nn::LayerNormOptions({width}).eps(kEps)) {}
  at::Tensor forward(const at::Tensor& x) {
    return LayerNormImpl::forward(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
};

torch::nn::Conv2d patches(std::int64_t in, std::int64_t out, std::int64_t side) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, side).stride(side));
}

// A depthwise convolution and layers for each pixel, whose scaled output is added to the input.
class Block final : public torch::nn::Module {
 public:
  Block(std::int64_t width, double layer_scale, double drop) {
    scale_ = register_parameter("layer_scale", at::full({width, 1, 1}, layer_scale));
    block_ = register_module("block", std::make_shared<Sequence>());
    block_->add(convolution({.in = width, .out = width, .kernel = 7, .groups = width, .bias = true}));
    block_->add_function([](const at::Tensor& x) { return x.permute({0, 2, 3, 1}); });
    block_->add(layer_norm(width, kEps)).add(Linear(width, 4 * width));
    block_->add_function([](const at::Tensor& x) { return at::gelu(x); }).add(Linear(4 * width, width));
    block_->add_function([](const at::Tensor& x) { return x.permute({0, 3, 1, 2}); });
    drop_ = register_module("stochastic_depth", DropPath(drop));
  }

  at::Tensor forward(const at::Tensor& x) { return drop_(scale_ * block_->forward(x)) + x; }

 private:
  at::Tensor scale_;
  std::shared_ptr<Sequence> block_;
  DropPath drop_{nullptr};
};

class ConvNext final : public RecomputableChain {
 public:
  ConvNext(const ConvNextConfig& config, const Blocks& blocks, const ImageSample& sample) {
    features_ = register_module("features", std::make_shared<Sequence>());
    std::int64_t width = config.width, total = 0, made = 0;
    for (const auto count : blocks) total += count;
    add_part(patches(sample.channels, width, 4), std::make_shared<ChannelNorm>(width));
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const auto layers = std::make_shared<Sequence>();
      for (int i = 0; i < blocks.at(stage); ++i, ++made) {
        const double depth = static_cast<double>(made) / static_cast<double>(total - 1);
        layers->add(std::make_shared<Block>(width, config.layer_scale, config.stochastic_depth * depth));
      }
      features_->add(layers);
      add_blocks("features." + features_->layers().back().name, *layers);
      if (stage + 1 == blocks.size()) break;
      add_part(std::make_shared<ChannelNorm>(width), patches(width, 2 * width, 2));
      width *= 2;
    }
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(std::make_shared<ChannelNorm>(width));
    classifier_->add_function([](const at::Tensor& x) { return x.flatten(1); }).add(Linear(width, sample.classes));
    add_block("classifier", {"classifier"},
              [this](const at::Tensor& x) { return classifier_->forward(x.mean({2, 3}, /*keepdim=*/true)); });
    initialize();
  }

 private:
  template <class First, class Second>
  void add_part(const First& first, const Second& second) {
    const auto part = std::make_shared<Sequence>();
    part->add(first).add(second);
    features_->add(part);
    const auto name = "features." + features_->layers().back().name;
    add_block(name, {name}, features_->layers().back().forward);
  }

  void initialize() {
    const at::NoGradGuard no_grad;
    for (const auto& module : modules(/*include_self=*/false)) {
      const auto draw = [](auto* layer) {
        if (layer == nullptr) return;
        truncated_normal(layer->weight, 0.02);
        layer->bias.zero_();
      };
      draw(module->as<torch::nn::Conv2d>());
      draw(module->as<torch::nn::Linear>());
    }
  }

  std::shared_ptr<Sequence> features_, classifier_;
};

constexpr std::int64_t kSmallest = 32;  // pixels a side; the strides reduce it to one

template <class Config>
bool add(const std::string& name, const std::string& help, const Blocks& blocks) {
  return Models::global().add<Config>(name, help, [name, blocks](const Config& config, const ModelSpec& spec) {
    return std::make_shared<ConvNext>(config, blocks, image_sample(name, spec, kSmallest));
  });
}

const bool convnext_registered = add<TinyConfig>("convnext_tiny", "ConvNeXt-T", {3, 3, 9, 3}) &&
                                 add<SmallConfig>("convnext_small", "ConvNeXt-S", {3, 3, 27, 3}) &&
                                 add<BaseConfig>("convnext_base", "ConvNeXt-B", {3, 3, 27, 3});

}  // namespace
}  // namespace phalanx
