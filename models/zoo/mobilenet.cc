// SPDX-License-Identifier: Apache-2.0
// MobileNets. Input [n, c, h, w] float, output logits [n, classes]. Parameters and buffers have torchvision's names and
// initial values. For small images the first convolution has stride 1.
//  - MobileNetV2 (Sandler et al. 2018, MobileNetV2: Inverted Residuals and Linear Bottlenecks, table 2):
//  features.{0..18}
//    and classifier.1
//  - MobileNetV3 (Howard et al. 2019, Searching for MobileNetV3, tables 1 and 2): features.N and classifier.{0,3}
#include <ATen/TensorOperators.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "models/batch_norm.h"
#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/inverted_residual.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct MobileNetConfig : Stem {
  double width_mult = 1;
  double dropout = 0.2;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("width_mult", width_mult, "factor of all widths, which are rounded to multiples of 8", config::above(0));
    v("dropout", dropout, "dropout rate before the last layer", config::between(0, 0.99));
  }
};

// The common parts of all MobileNets.
class MobileNet : public RecomputableChain {
 protected:
  MobileNet() {
    features_ = register_module("features", std::make_shared<Sequence>());
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
  }

  Sequence& features() { return *features_; }
  Sequence& classifier() { return *classifier_; }

  // Called when all layers have been added.
  void finish() {
    add_blocks("features", *features_);
    add_blocks("classifier", *classifier_);
    initialize_convolutions(*this, torch::kFanOut);
    initialize_linear(*this, 0.01);
  }

  static at::Tensor mean_over_pixels(const at::Tensor& x) { return x.mean({2, 3}); }

 private:
  std::shared_ptr<Sequence> features_, classifier_;
};

struct Stage {
  std::int64_t expansion, channels, blocks, stride;
};

constexpr std::array kStages{Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2},  Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}};

at::Tensor relu6(const at::Tensor& x) { return at::hardtanh(x, 0, 6); }

// A 1 x 1 convolution to more channels, a depthwise convolution, and a 1 x 1 convolution to few channels without an
// activation.
class LinearBottleneck final : public torch::nn::Module {
 public:
  LinearBottleneck(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t expansion)
      : residual_(stride == 1 && in == out) {
    const auto inner = in * expansion;
    conv_ = register_module("conv", std::make_shared<Sequence>());
    if (expansion != 1) conv_->add(conv_norm({.in = in, .out = inner, .kernel = 1}, relu6));
    conv_->add(conv_norm({.in = inner, .out = inner, .stride = stride, .groups = inner}, relu6));
    conv_->add(convolution({.in = inner, .out = out, .kernel = 1})).add(BatchNorm2d(out));
  }

  at::Tensor forward(const at::Tensor& x) { return residual_ ? x + conv_->forward(x) : conv_->forward(x); }

 private:
  bool residual_;
  std::shared_ptr<Sequence> conv_;
};

class MobileNetV2 final : public MobileNet {
 public:
  MobileNetV2(const MobileNetConfig& config, bool imagenet, const ImageSample& sample) {
    std::int64_t channels = make_divisible(32 * config.width_mult);
    features().add(conv_norm({.in = sample.channels, .out = channels, .stride = imagenet ? 2 : 1}, relu6));
    for (const auto& stage : kStages) {
      const auto out = make_divisible(static_cast<double>(stage.channels) * config.width_mult);
      for (std::int64_t i = 0; i < stage.blocks; ++i) {
        const auto stride = i == 0 ? stage.stride : 1;
        features().add(std::make_shared<LinearBottleneck>(channels, out, stride, stage.expansion));
        channels = out;
      }
    }
    const auto last = make_divisible(1280 * std::max(1.0, config.width_mult));
    features().add(conv_norm({.in = channels, .out = last, .kernel = 1}, relu6));
    features().add_function(mean_over_pixels);
    classifier().add(Dropout(config.dropout)).add(Linear(last, sample.classes));
    finish();
  }
};

// A row of the tables: kernel, expanded channels, channels, squeeze-and-excitation, h-swish instead of ReLU, stride.
struct Row {
  std::int64_t kernel, expanded, out;
  bool squeeze, swish;
  std::int64_t stride;
};

constexpr Row kLarge[] = {{3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
                          {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
                          {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
                          {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
                          {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};

constexpr Row kSmall[] = {{3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
                          {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
                          {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
                          {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};

struct Variant {
  const char* name;
  const char* help;
  std::span<const Row> rows;
  std::int64_t last;  // width of the last hidden layer
};

constexpr Variant kVariants[] = {{"mobilenet_v3_large", "MobileNetV3-Large, for small or large images", kLarge, 1280},
                                 {"mobilenet_v3_small", "MobileNetV3-Small, for small or large images", kSmall, 1024}};

at::Tensor swish(const at::Tensor& x) { return at::hardswish(x); }
at::Tensor relu(const at::Tensor& x) { return at::relu(x); }
at::Tensor sigmoid(const at::Tensor& x) { return at::hardsigmoid(x); }

constexpr NormOptions kNorm{.eps = 0.001, .momentum = 0.01};

class MobileNetV3 final : public MobileNet {
 public:
  MobileNetV3(const Variant& variant, const MobileNetConfig& config, bool imagenet, const ImageSample& sample) {
    const auto scaled = [&](std::int64_t channels) {
      return make_divisible(static_cast<double>(channels) * config.width_mult);
    };
    std::int64_t channels = scaled(16);
    features().add(conv_norm({.in = sample.channels, .out = channels, .stride = imagenet ? 2 : 1}, swish, kNorm));
    for (const auto& row : variant.rows) {
      const auto expanded = scaled(row.expanded);
      const InvertedResidual::Shape shape{
          .in = channels,
          .expanded = expanded,
          .out = scaled(row.out),
          .kernel = row.kernel,
          .stride = row.stride,
          .squeezed = row.squeeze ? make_divisible(static_cast<double>(expanded / 4)) : 0};
      features().add(std::make_shared<InvertedResidual>(
          shape, InvertedResidual::Functions{row.swish ? swish : relu, {relu, sigmoid}, kNorm}));
      channels = shape.out;
    }
    features().add(conv_norm({.in = channels, .out = 6 * channels, .kernel = 1}, swish, kNorm));
    features().add_function(mean_over_pixels);
    const auto last = scaled(variant.last);
    classifier().add(Linear(6 * channels, last)).add_function(swish).add(Dropout(config.dropout));
    classifier().add(Linear(last, sample.classes));
    finish();
  }
};

// Registers a model that `make(config, imagenet, sample)` creates.
template <class Make>
bool add_mobilenet(const std::string& name, const std::string& help, const Make& make) {
  return Models::global().add<MobileNetConfig>(name, help, [=](const MobileNetConfig& config, const ModelSpec& spec) {
    ImageSample sample;
    const bool imagenet = config.large(name, spec, {.small = 17, .imagenet = 33}, sample);
    return make(config, imagenet, sample);
  });
}

const bool mobilenet_v2_registered =
    add_mobilenet("mobilenet_v2", "MobileNetV2, for small or large images",
                  [](const MobileNetConfig& config, bool imagenet, const ImageSample& sample) {
                    return std::make_shared<MobileNetV2>(config, imagenet, sample);
                  });

const bool mobilenet_v3_registered = std::ranges::all_of(kVariants, [](const Variant& variant) {
  return add_mobilenet(variant.name, variant.help,
                       [&variant](const MobileNetConfig& config, bool imagenet, const ImageSample& sample) {
                         return std::make_shared<MobileNetV3>(variant, config, imagenet, sample);
                       });
});

}  // namespace
}  // namespace phalanx
