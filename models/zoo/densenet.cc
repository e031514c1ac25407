// SPDX-License-Identifier: Apache-2.0
// DenseNet-BC (Huang et al. 2017, Densely Connected Convolutional Networks, table 1): each layer takes the outputs of
// all earlier layers of its block. Input [n, c, h, w] float, output logits [n, classes]. Parameters, buffers, names and
// initial values are torchvision's. For small images the stem is one 3 x 3 convolution, as in section 4.1.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "models/batch_norm.h"
#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/linear.h"

namespace phalanx {
namespace {

struct DenseNetConfig : Stem {
  std::int64_t growth = 32;
  double dropout = 0;

  template <class V>
  void visit(V& v) {
    Stem::visit(v);
    v("growth", growth, "channels that each layer adds", config::at_least(2));
    v("dropout", dropout, "dropout rate of what each layer adds", config::between(0, 0.99));
  }
};

struct Variant {
  const char* name;
  const char* help;
  std::array<int, 4> layers;  // number of layers in each block
};

constexpr std::array kVariants{
    Variant{"densenet121", "DenseNet-BC with 121 layers", {6, 12, 24, 16}},
    Variant{"densenet169", "DenseNet-BC with 169 layers", {6, 12, 32, 32}},
    Variant{"densenet201", "DenseNet-BC with 201 layers", {6, 12, 48, 32}},
};

constexpr std::int64_t kBottleneck = 4;  // inner channels of a layer, divided by the channels that it adds

// A bottleneck, whose output is appended to its input.
class DenseLayer final : public torch::nn::Module {
 public:
  DenseLayer(std::int64_t in, const DenseNetConfig& config) {
    const auto inner = kBottleneck * config.growth;
    norm1_ = register_module("norm1", BatchNorm2d(in));
    conv1_ = register_module("conv1", convolution({.in = in, .out = inner, .kernel = 1}));
    norm2_ = register_module("norm2", BatchNorm2d(inner));
    conv2_ = register_module("conv2", convolution({.in = inner, .out = config.growth}));
    dropout_ = register_module("dropout", Dropout(config.dropout));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inner = conv1_(norm1_(x).relu_());
    return at::cat({x, dropout_(conv2_(norm2_(inner).relu_()))}, 1);
  }

 private:
  BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
  Conv2d conv1_{nullptr}, conv2_{nullptr};
  Dropout dropout_{nullptr};
};

// The layers between two blocks, which halve the channels, height and width.
class Transition final : public torch::nn::Module {
 public:
  explicit Transition(std::int64_t in) {
    norm_ = register_module("norm", BatchNorm2d(in));
    conv_ = register_module("conv", convolution({.in = in, .out = in / 2, .kernel = 1}));
  }

  at::Tensor forward(const at::Tensor& x) { return at::avg_pool2d(conv_(norm_(x).relu_()), 2, 2); }

 private:
  BatchNorm2d norm_{nullptr};
  Conv2d conv_{nullptr};
};

class DenseNet final : public RecomputableChain {
 public:
  DenseNet(const Variant& variant, const DenseNetConfig& config, bool imagenet, const ImageSample& sample) {
    features_ = register_module("features", std::make_shared<torch::nn::Module>());
    std::int64_t channels = 2 * config.growth;
    add_stem(sample.channels, channels, imagenet);
    for (std::size_t block = 0; block < variant.layers.size(); ++block) {
      channels = add_dense_block(std::to_string(block + 1), variant.layers.at(block), channels, config);
      if (block + 1 == variant.layers.size()) break;
      const auto name = "transition" + std::to_string(block + 1);
      const auto transition = features_->register_module(name, std::make_shared<Transition>(channels));
      add_block("features." + name, {"features." + name},
                [layer = transition.get()](const at::Tensor& x) { return layer->forward(x); });
      channels /= 2;
    }
    norm5_ = features_->register_module("norm5", BatchNorm2d(channels));
    classifier_ = register_module("classifier", Linear(channels, sample.classes));
    add_block("head", {"features.norm5", "classifier"},
              [this](const at::Tensor& x) { return classifier_(norm5_(x).relu_().mean({2, 3})); });
    initialize_convolutions(*this, torch::kFanIn);
    const at::NoGradGuard no_grad;
    classifier_->bias.zero_();
  }

 private:
  void add_stem(std::int64_t in, std::int64_t channels, bool imagenet) {
    const std::int64_t kernel = imagenet ? 7 : 3, stride = imagenet ? 2 : 1;
    conv0_ = features_->register_module("conv0",
                                        convolution({.in = in, .out = channels, .kernel = kernel, .stride = stride}));
    norm0_ = features_->register_module("norm0", BatchNorm2d(channels));
    add_block("stem", {"features.conv0", "features.norm0"}, [this, imagenet](const at::Tensor& image) {
      const at::Tensor x = norm0_(conv0_(image)).relu_();
      return imagenet ? at::max_pool2d(x, 3, 2, 1) : x;
    });
  }

  // Returns the number of channels after the block.
  std::int64_t add_dense_block(const std::string& number, int layers, std::int64_t channels,
                               const DenseNetConfig& config) {
    const auto block = features_->register_module("denseblock" + number, std::make_shared<Sequence>());
    for (int i = 0; i < layers; ++i) {
      block->add("denselayer" + std::to_string(i + 1), std::make_shared<DenseLayer>(channels, config));
      channels += config.growth;
    }
    add_blocks("features.denseblock" + number, *block);
    return channels;
  }

  std::shared_ptr<torch::nn::Module> features_;
  Conv2d conv0_{nullptr};
  BatchNorm2d norm0_{nullptr}, norm5_{nullptr};
  Linear classifier_{nullptr};
};

const bool densenet_registered = std::ranges::all_of(kVariants, [](const Variant& variant) {
  const auto make = [&variant](const DenseNetConfig& config, const ModelSpec& spec) {
    ImageSample sample;
    const bool imagenet = config.large(variant.name, spec, {.small = 16, .imagenet = 61}, sample);
    return std::make_shared<DenseNet>(variant, config, imagenet, sample);
  };
  return Models::global().add<DenseNetConfig>(variant.name, variant.help, make);
});

}  // namespace
}  // namespace phalanx
