// SPDX-License-Identifier: Apache-2.0
// MobileNetV3 (Howard et al. 2019, Searching for MobileNetV3, tables 1 and 2). Input [n, c, h, w] float, output logits
// [n, classes]. Parameters and buffers features.N and classifier.{0,3}, with torchvision's names and initial values.
// For small images the first convolution has stride 1.
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>

#include <memory>
#include <span>
#include <string>

#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/inverted_residual.h"
#include "models/linear.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct MobileNetV3Config : Stem {
  double width_mult = 1;
  double dropout = 0.2;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("width_mult", width_mult, "factor of all widths, which are rounded to multiples of 8", config::above(0));
    v("dropout", dropout, "dropout rate before the last layer", config::between(0, 0.99));
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

class MobileNetV3 final : public Network {
 public:
  MobileNetV3(const Variant& variant, const MobileNetV3Config& config, bool imagenet, const ImageSample& sample) {
    const auto scaled = [&](std::int64_t channels) {
      return make_divisible(static_cast<double>(channels) * config.width_mult);
    };
    std::int64_t channels = scaled(16);
    features_ = register_module("features", std::make_shared<Sequence>());
    features_->add(conv_norm({.in = sample.channels, .out = channels, .stride = imagenet ? 2 : 1}, swish, kNorm));
    for (const auto& row : variant.rows) {
      const auto expanded = scaled(row.expanded);
      const InvertedResidual::Shape shape{
          .in = channels,
          .expanded = expanded,
          .out = scaled(row.out),
          .kernel = row.kernel,
          .stride = row.stride,
          .squeezed = row.squeeze ? make_divisible(static_cast<double>(expanded / 4)) : 0};
      features_->add(std::make_shared<InvertedResidual>(
          shape, InvertedResidual::Functions{row.swish ? swish : relu, {relu, sigmoid}, kNorm}));
      channels = shape.out;
    }
    features_->add(conv_norm({.in = channels, .out = 6 * channels, .kernel = 1}, swish, kNorm));
    features_->add_function([](const at::Tensor& x) { return x.mean({2, 3}); });
    const auto last = scaled(variant.last);
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(Linear(6 * channels, last)).add_function(swish).add(Dropout(config.dropout));
    classifier_->add(Linear(last, sample.classes));
    add_blocks("features", *features_);
    add_blocks("classifier", *classifier_);
    initialize_convolutions(*this, torch::kFanOut);
    initialize_linear(*this, 0.01);
  }

 private:
  std::shared_ptr<Sequence> features_, classifier_;
};

const bool mobilenet_v3_registered = std::ranges::all_of(kVariants, [](const Variant& variant) {
  const auto make = [&variant](const MobileNetV3Config& config, const ModelSpec& spec) {
    ImageSample sample;
    const bool imagenet = config.large(variant.name, spec, {.small = 17, .imagenet = 33}, sample);
    return std::make_shared<MobileNetV3>(variant, config, imagenet, sample);
  };
  return Models::global().add<MobileNetV3Config>(variant.name, variant.help, make);
});

}  // namespace
}  // namespace phalanx
