// SPDX-License-Identifier: Apache-2.0
// Residual networks. Input [n, c, h, w] float, dense or channels_last; output logits [n, classes].
//   resnet{18,34,50,101,152}  He et al. 2015, Deep Residual Learning for Image Recognition, table 1; the stride of a
//                             bottleneck is in its 3 x 3 convolution, as in torchvision
//   wide_resnet50_2           Zagoruyko and Komodakis 2016, Wide Residual Networks: bottlenecks twice as wide
//   resnext50_32x4d           Xie et al. 2017, Aggregated Residual Transformations: 32 groups of 4 channels
// Parameters, buffers, names and initial values are torchvision's. For small images the stem is one 3 x 3 convolution,
// as in section 4.2 of the first paper. With stem: imagenet, it is a 7 x 7 convolution with stride 2 and a max pool, as
// in section 4.1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "models/batch_norm.h"
#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct ResNetConfig : Stem {
  std::int64_t width = 64;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("width", width, "channels of the first stage, a multiple of 16; each later one doubles them",
      config::at_least(16));
  }
};

struct Variant {
  const char* name;
  const char* help;
  std::array<int, 4> blocks;  // number of blocks in each stage
  bool bottleneck = true;
  std::int64_t groups = 1;
  std::int64_t group_width = 64;  // channels of each group in the first stage, which has 64 planes
};

constexpr std::array kVariants{
    Variant{"resnet18", "ResNet-18, for small or large images", {2, 2, 2, 2}, false},
    Variant{"resnet34", "ResNet-34, for small or large images", {3, 4, 6, 3}, false},
    Variant{"resnet50", "ResNet-50, for small or large images", {3, 4, 6, 3}},
    Variant{"resnet101", "ResNet-101, for small or large images", {3, 4, 23, 3}},
    Variant{"resnet152", "ResNet-152, for small or large images", {3, 8, 36, 3}},
    Variant{"wide_resnet50_2", "ResNet-50 whose bottlenecks are twice as wide", {3, 4, 6, 3}, true, 1, 128},
    Variant{"resnext50_32x4d", "ResNeXt-50, in 32 groups of 4 channels", {3, 4, 6, 3}, true, 32, 4},
};

struct Shape {
  std::int64_t in = 0;
  std::int64_t inner = 0;  // channels of the 3 x 3 convolution
  std::int64_t out = 0;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
};

// Adds the input to the output of two 3 x 3 convolutions, or of a bottleneck of 1 x 1, 3 x 3 and 1 x 1 convolutions.
class Residual final : public torch::nn::Module {
 public:
  Residual(const Shape& shape, bool bottleneck) {
    const auto [in, inner, out, stride, groups] = shape;
    if (bottleneck) {
      add("1", {.in = in, .out = inner, .kernel = 1});
      add("2", {.in = inner, .out = inner, .stride = stride, .groups = groups});
      add("3", {.in = inner, .out = out, .kernel = 1});
    } else {
      add("1", {.in = in, .out = out, .stride = stride});
      add("2", {.in = out, .out = out});
    }
    if (stride == 1 && in == out) return;
    downsample_ = conv_norm({.in = in, .out = out, .kernel = 1, .stride = stride}, {});
    register_module("downsample", downsample_);
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor change = x;
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      change = norms_[i](convolutions_[i](change));
      if (i + 1 < norms_.size()) change = change.relu_();
    }
    return (change + (downsample_ ? downsample_->forward(x) : x)).relu_();
  }

 private:
  void add(const std::string& number, const Convolution& shape) {
    convolutions_.push_back(register_module("conv" + number, convolution(shape)));
    norms_.push_back(register_module("bn" + number, BatchNorm2d(shape.out)));
  }

  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm2d> norms_;
  std::shared_ptr<Sequence> downsample_;
};

class ResNet final : public RecomputableChain {
 public:
  ResNet(const Variant& variant, std::int64_t width, bool imagenet, const ImageSample& sample) {
    const std::int64_t kernel = imagenet ? 7 : 3, stride = imagenet ? 2 : 1;
    conv1_ = register_module("conv1",
                             convolution({.in = sample.channels, .out = width, .kernel = kernel, .stride = stride}));
    bn1_ = register_module("bn1", BatchNorm2d(width));
    add_block("stem", {"conv1", "bn1"}, [this, imagenet](const at::Tensor& image) {
      const at::Tensor x = bn1_(conv1_(image)).relu_();
      return imagenet ? at::max_pool2d(x, 3, 2, 1) : x;
    });
    std::int64_t channels = width;
    for (std::size_t stage = 0; stage < 4; ++stage) channels = add_layer(variant, stage, width << stage, channels);
    fc_ = register_module("fc", Linear(channels, sample.classes));
    add_block("head", {"fc"}, [this](const at::Tensor& x) { return fc_(x.mean({2, 3})); });
    // Runs after all modules have drawn their own values, so that a seed gives the same values as in torchvision.
    initialize_convolutions(*this, torch::kFanOut);
  }

 private:
  // Returns the number of channels after the layer. Its first block halves height and width, except in the first stage.
  std::int64_t add_layer(const Variant& variant, std::size_t stage, std::int64_t planes, std::int64_t channels) {
    const auto out = variant.bottleneck ? 4 * planes : planes;
    const auto name = "layer" + std::to_string(stage + 1);
    const auto layer = register_module(name, std::make_shared<Sequence>());
    for (int i = 0; i < variant.blocks.at(stage); ++i) {
      const Shape shape{.in = i == 0 ? channels : out,
                        .inner = planes * variant.group_width / 64 * variant.groups,
                        .out = out,
                        .stride = i == 0 && stage > 0 ? 2 : 1,
                        .groups = variant.groups};
      layer->add(std::make_shared<Residual>(shape, variant.bottleneck));
    }
    add_blocks(name, *layer);
    return out;
  }

  Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  Linear fc_{nullptr};
};

std::shared_ptr<ResNet> make_resnet(const Variant& variant, const ResNetConfig& config, const ModelSpec& spec) {
  ImageSample sample;
  const bool imagenet = config.large(variant.name, spec, {.small = 9, .imagenet = 33}, sample);
  if (config.width % 16 != 0) {
    throw ConfigError(std::string("model ") + variant.name + ": width " + std::to_string(config.width) +
                      " is not a multiple of 16");
  }
  return std::make_shared<ResNet>(variant, config.width, imagenet, sample);
}

const bool resnet_registered = std::ranges::all_of(kVariants, [](const Variant& variant) {
  return Models::global().add<ResNetConfig>(
      variant.name, variant.help,
      [&variant](const ResNetConfig& config, const ModelSpec& spec) { return make_resnet(variant, config, spec); });
});

}  // namespace
}  // namespace phalanx
