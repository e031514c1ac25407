// SPDX-License-Identifier: Apache-2.0
// EfficientNet (Tan and Le 2019, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, table 1,
// scaled as in section 3.3). Input [n, c, h, w] float, output logits [n, classes]. Parameters and buffers features.N
// and classifier.1, with torchvision's names and initial values. For small images the first convolution has stride 1.
#include <ATen/ops/mean.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/inverted_residual.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct EfficientNetConfig : Stem {
  double width_mult = 1;
  double depth_mult = 1;
  double dropout = 0.2;
  double stochastic_depth = 0.2;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("width_mult", width_mult, "factor of all widths, which are rounded to multiples of 8", config::above(0));
    v("depth_mult", depth_mult, "factor of the number of blocks of each stage, rounded up", config::above(0));
    v("dropout", dropout, "dropout rate before the classifier", config::between(0, 0.99));
    v("stochastic_depth", stochastic_depth, "probability of skipping a block; lower for earlier ones",
      config::between(0, 0.99));
  }
};

// Table 3 of the authors' code: width, depth and dropout of each size.
struct B0Config : EfficientNetConfig {};
struct B1Config : EfficientNetConfig {
  B1Config() { depth_mult = 1.1; }
};
struct B2Config : EfficientNetConfig {
  B2Config() { width_mult = 1.1, depth_mult = 1.2, dropout = 0.3; }
};
struct B3Config : EfficientNetConfig {
  B3Config() { width_mult = 1.2, depth_mult = 1.4, dropout = 0.3; }
};

struct Stage {
  std::int64_t expansion, kernel, stride, channels, blocks;
};

constexpr std::array kStages{Stage{1, 3, 1, 16, 1}, Stage{6, 3, 2, 24, 2},  Stage{6, 5, 2, 40, 2},
                             Stage{6, 3, 2, 80, 3}, Stage{6, 5, 1, 112, 3}, Stage{6, 5, 2, 192, 4},
                             Stage{6, 3, 1, 320, 1}};

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }
at::Tensor sigmoid(const at::Tensor& x) { return at::sigmoid(x); }

std::int64_t blocks_of(const Stage& stage, const EfficientNetConfig& config) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.blocks) * config.depth_mult));
}

class EfficientNet final : public RecomputableChain {
 public:
  EfficientNet(const EfficientNetConfig& config, bool imagenet, const ImageSample& sample) {
    std::int64_t blocks = 0;
    for (const auto& stage : kStages) blocks += blocks_of(stage, config);
    std::int64_t channels = make_divisible(32 * config.width_mult);
    features_ = register_module("features", std::make_shared<Sequence>());
    features_->add(conv_norm({.in = sample.channels, .out = channels, .stride = imagenet ? 2 : 1}, silu));
    add_layer(0);
    const double step = config.stochastic_depth / static_cast<double>(blocks);
    double drop = 0;
    for (std::size_t i = 0; i < kStages.size(); ++i) {
      channels = add_stage(kStages.at(i), config, channels, drop, step);
      add_blocks("features." + std::to_string(i + 1), static_cast<const Sequence&>(*features_->layers().back().module));
    }
    features_->add(conv_norm({.in = channels, .out = 4 * channels, .kernel = 1}, silu));
    add_layer(kStages.size() + 1);
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(Dropout(config.dropout)).add(Linear(4 * channels, sample.classes));
    add_block("classifier", {"classifier"},
              [this](const at::Tensor& x) { return classifier_->forward(x.mean({2, 3})); });
    initialize_convolutions(*this, torch::kFanOut);
    initialize_classifier(sample.classes);
  }

 private:
  void add_layer(std::size_t number) {
    const auto name = "features." + std::to_string(number);
    add_block(name, {name}, features_->layers().at(number).forward);
  }

  // Returns the number of channels after the stage.
  std::int64_t add_stage(const Stage& stage, const EfficientNetConfig& config, std::int64_t channels, double& drop,
                         double step) {
    const auto out = make_divisible(static_cast<double>(stage.channels) * config.width_mult);
    const auto layers = std::make_shared<Sequence>();
    for (std::int64_t i = 0; i < blocks_of(stage, config); ++i) {
      const InvertedResidual::Shape shape{.in = channels,
                                          .expanded = make_divisible(static_cast<double>(channels * stage.expansion)),
                                          .out = out,
                                          .kernel = stage.kernel,
                                          .stride = i == 0 ? stage.stride : 1,
                                          .squeezed = std::max<std::int64_t>(1, channels / 4),
                                          .drop = drop};
      layers->add(
          std::make_shared<InvertedResidual>(shape, InvertedResidual::Functions{silu, {silu, sigmoid}, NormOptions{}}));
      channels = out;
      drop += step;
    }
    features_->add(layers);
    return out;
  }

  void initialize_classifier(std::int64_t classes) {
    const at::NoGradGuard no_grad;
    const double bound = 1 / std::sqrt(static_cast<double>(classes));
    auto* const linear = classifier_->layers().back().module->as<torch::nn::Linear>();
    linear->weight.uniform_(-bound, bound);
    linear->bias.zero_();
  }

  std::shared_ptr<Sequence> features_, classifier_;
};

template <class Config>
bool add(const std::string& name, const std::string& help) {
  return Models::global().add<Config>(name, help, [name](const Config& config, const ModelSpec& spec) {
    ImageSample sample;
    const bool imagenet = config.large(name, spec, {.small = 17, .imagenet = 33}, sample);
    return std::make_shared<EfficientNet>(config, imagenet, sample);
  });
}

const bool efficientnet_registered =
    add<B0Config>("efficientnet_b0", "EfficientNet of the base size") &&
    add<B1Config>("efficientnet_b1", "EfficientNet, 1.1 times as deep") &&
    add<B2Config>("efficientnet_b2", "EfficientNet, 1.1 times as wide and 1.2 times as deep") &&
    add<B3Config>("efficientnet_b3", "EfficientNet, 1.2 times as wide and 1.4 times as deep");

}  // namespace
}  // namespace phalanx
