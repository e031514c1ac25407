// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 (Sandler et al. 2018, MobileNetV2: Inverted Residuals and Linear Bottlenecks, table 2). Input [n, c, h,
// w] float, output logits [n, classes]. Parameters and buffers features.{0..18} and classifier.1, with torchvision's
// names and initial values. For small images the first convolution has stride 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/mean.h>

#include <algorithm>
#include <array>
#include <memory>

#include "models/batch_norm.h"
#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/inverted_residual.h"
#include "models/linear.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct MobileNetV2Config : Stem {
  double width_mult = 1;
  double dropout = 0.2;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("width_mult", width_mult, "factor of all widths, which are rounded to multiples of 8", config::above(0));
    v("dropout", dropout, "dropout rate before the classifier", config::between(0, 0.99));
  }
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

class MobileNetV2 final : public Network {
 public:
  MobileNetV2(const MobileNetV2Config& config, bool imagenet, const ImageSample& sample) {
    std::int64_t channels = make_divisible(32 * config.width_mult);
    features_ = register_module("features", std::make_shared<Sequence>());
    features_->add(conv_norm({.in = sample.channels, .out = channels, .stride = imagenet ? 2 : 1}, relu6));
    for (const auto& stage : kStages) {
      const auto out = make_divisible(static_cast<double>(stage.channels) * config.width_mult);
      for (std::int64_t i = 0; i < stage.blocks; ++i) {
        const auto stride = i == 0 ? stage.stride : 1;
        features_->add(std::make_shared<LinearBottleneck>(channels, out, stride, stage.expansion));
        channels = out;
      }
    }
    const auto last = make_divisible(1280 * std::max(1.0, config.width_mult));
    features_->add(conv_norm({.in = channels, .out = last, .kernel = 1}, relu6));
    features_->add_function([](const at::Tensor& x) { return x.mean({2, 3}); });
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(Dropout(config.dropout)).add(Linear(last, sample.classes));
    add_blocks("features", *features_);
    add_blocks("classifier", *classifier_);
    initialize_convolutions(*this, torch::kFanOut);
    initialize_linear(*this, 0.01);
  }

 private:
  std::shared_ptr<Sequence> features_, classifier_;
};

const bool mobilenet_v2_registered = Models::global().add<MobileNetV2Config>(
    "mobilenet_v2", "MobileNetV2, for small or large images",
    [](const MobileNetV2Config& config, const ModelSpec& spec) {
      ImageSample sample;
      const bool imagenet = config.large("mobilenet_v2", spec, {.small = 17, .imagenet = 33}, sample);
      return std::make_shared<MobileNetV2>(config, imagenet, sample);
    });

}  // namespace
}  // namespace phalanx
