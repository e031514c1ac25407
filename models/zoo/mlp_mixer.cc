// SPDX-License-Identifier: Apache-2.0
// MLP-Mixer (Tolstikhin et al. 2021, MLP-Mixer: An all-MLP Architecture for Vision, figure 1), which alternates layers
// across patches and layers across channels. Input [n, c, h, w] float, output logits [n, classes]. Parameters
// stem.proj, blocks.N.{norm1, mlp_tokens.{fc1, fc2}, norm2, mlp_channels.{fc1, fc2}}, norm and head, with the initial
// values of timm's mixer_b16_224: the head is initialized with 0.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mean.h>
#include <torch/nn/modules/conv.h>

#include <cmath>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "models/chain_network.h"
#include "models/drop_path.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/layer_norm.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct MixerConfig {
  std::int64_t patch = 16;
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t token_hidden = 384;
  std::int64_t channel_hidden = 3072;
  double dropout = 0;
  double stochastic_depth = 0;

  template <class V>
  void visit(V& v) {
    v("patch", patch, "side of the squares that an image is cut into", config::at_least(1));
    v("layers", layers, "number of blocks", config::at_least(1));
    v("width", width, "channels of each patch", config::at_least(1));
    v("token_hidden", token_hidden, "width of the hidden layers across patches", config::at_least(1));
    v("channel_hidden", channel_hidden, "width of the hidden layers across channels", config::at_least(1));
    v("dropout", dropout, "dropout rate after each of these layers", config::between(0, 0.99));
    v("stochastic_depth", stochastic_depth, "probability of skipping either half of a block", config::between(0, 0.99));
  }
};

constexpr double kEpsilon = 1e-6;

class Perceptron final : public torch::nn::Module {
 public:
  Perceptron(std::int64_t width, std::int64_t hidden, double dropout) {
    fc1_ = register_module("fc1", Linear(width, hidden));
    drop1_ = register_module("drop1", Dropout(dropout));
    fc2_ = register_module("fc2", Linear(hidden, width));
    drop2_ = register_module("drop2", Dropout(dropout));
  }

  at::Tensor forward(const at::Tensor& x) { return drop2_(fc2_(drop1_(at::gelu(fc1_(x))))); }

  void initialize() {
    for (auto* const layer : {fc1_.get(), fc2_.get()}) {
      torch::nn::init::xavier_uniform_(layer->weight);
      layer->bias.normal_(0, 1e-6);
    }
  }

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
  Dropout drop1_{nullptr}, drop2_{nullptr};
};

class MixerBlock final : public torch::nn::Module {
 public:
  MixerBlock(const MixerConfig& config, std::int64_t patches) {
    norm1_ = register_module("norm1", layer_norm(config.width, kEpsilon));
    tokens_ = register_module("mlp_tokens", std::make_shared<Perceptron>(patches, config.token_hidden, config.dropout));
    drop1_ = register_module("drop_path1", DropPath(config.stochastic_depth));
    norm2_ = register_module("norm2", layer_norm(config.width, kEpsilon));
    channels_ = register_module("mlp_channels",
                                std::make_shared<Perceptron>(config.width, config.channel_hidden, config.dropout));
    drop2_ = register_module("drop_path2", DropPath(config.stochastic_depth));
  }

  // Maps [n, patches, width] to the same shape.
  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x = input + drop1_(tokens_->forward(norm1_(input).transpose(1, 2)).transpose(1, 2));
    return x + drop2_(channels_->forward(norm2_(x)));
  }

  void initialize() {
    tokens_->initialize();
    channels_->initialize();
  }

 private:
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  std::shared_ptr<Perceptron> tokens_, channels_;
  DropPath drop1_{nullptr}, drop2_{nullptr};
};

// Standard deviation of a standard normal distribution that is truncated at two standard deviations.
constexpr double kDeviationWithin = 0.87962566103423978;

class MlpMixer final : public RecomputableChain {
 public:
  MlpMixer(const MixerConfig& config, const ImageSample& sample) {
    const auto stem = register_module("stem", std::make_shared<torch::nn::Module>());
    const auto options = torch::nn::Conv2dOptions(sample.channels, config.width, config.patch).stride(config.patch);
    proj_ = stem->register_module("proj", torch::nn::Conv2d(options));
    add_block("stem", {"stem"}, [this](const at::Tensor& image) { return proj_(image).flatten(2).transpose(1, 2); });
    const auto patches = (sample.height / config.patch) * (sample.width / config.patch);
    const auto blocks = register_module("blocks", std::make_shared<Sequence>());
    std::vector<std::shared_ptr<MixerBlock>> made;
    for (std::int64_t i = 0; i < config.layers; ++i) {
      made.push_back(std::make_shared<MixerBlock>(config, patches));
      blocks->add(made.back());
    }
    add_blocks("blocks", *blocks);
    norm_ = register_module("norm", layer_norm(config.width, kEpsilon));
    head_ = register_module("head", Linear(config.width, sample.classes));
    add_block("head", {"norm", "head"}, [this](const at::Tensor& x) { return head_(norm_(x).mean(1)); });

    const at::NoGradGuard no_grad;
    truncated_normal(proj_->weight, 1);
    const auto fan_in = static_cast<double>(sample.channels * config.patch * config.patch);
    proj_->weight.mul_(std::sqrt(1 / fan_in) / kDeviationWithin);
    proj_->bias.zero_();
    for (const auto& block : made) block->initialize();
    head_->weight.zero_();
    head_->bias.zero_();
  }

 private:
  torch::nn::Conv2d proj_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  Linear head_{nullptr};
};

std::shared_ptr<MlpMixer> make_mixer(const MixerConfig& config, const ModelSpec& spec) {
  const auto sample = image_sample("mlp_mixer", spec, config.patch);
  if (sample.height % config.patch != 0 || sample.width % config.patch != 0) {
    throw ConfigError("model mlp_mixer: images of " + std::to_string(sample.height) + " x " +
                      std::to_string(sample.width) + " pixels cannot be cut into patches of " +
                      std::to_string(config.patch) + " pixels: set patch to a divisor");
  }
  return std::make_shared<MlpMixer>(config, sample);
}

const bool mlp_mixer_registered =
    Models::global().add<MixerConfig>("mlp_mixer", "MLP-Mixer, by default of the size B/16", make_mixer);

}  // namespace
}  // namespace phalanx
