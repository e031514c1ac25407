// SPDX-License-Identifier: Apache-2.0
// VGG (Simonyan and Zisserman 2015, Very Deep Convolutional Networks for Large-Scale Image Recognition, table 1,
// configurations A, B, D and E), with or without batch norm. Input [n, c, h, w] float, output logits [n, classes].
// Parameters and buffers features.N and classifier.{0,3,6}, with torchvision's initial values.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "models/batch_norm.h"
#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/linear.h"
#include "models/relu.h"

namespace phalanx {
namespace {

struct VggConfig {
  std::int64_t width = 64;
  std::int64_t hidden = 4096;
  double dropout = 0.5;

  template <class V>
  void visit(V& v) {
    v("width", width, "channels of the first stage; the later ones have 2, 4, 8 and 8 times as many",
      config::at_least(1));
    v("hidden", hidden, "width of the two hidden layers of the classifier", config::at_least(1));
    v("dropout", dropout, "dropout rate after these layers", config::between(0, 0.99));
  }
};

struct Variant {
  const char* name;
  const char* help;
  std::array<int, 5> layers;  // convolutions of each stage
  bool batch_norm;
};

constexpr std::array kVariants{
    Variant{"vgg11", "VGG with 11 layers", {1, 1, 2, 2, 2}, false},
    Variant{"vgg11_bn", "VGG with 11 layers and batch norm", {1, 1, 2, 2, 2}, true},
    Variant{"vgg13", "VGG with 13 layers", {2, 2, 2, 2, 2}, false},
    Variant{"vgg13_bn", "VGG with 13 layers and batch norm", {2, 2, 2, 2, 2}, true},
    Variant{"vgg16", "VGG with 16 layers", {2, 2, 3, 3, 3}, false},
    Variant{"vgg16_bn", "VGG with 16 layers and batch norm", {2, 2, 3, 3, 3}, true},
    Variant{"vgg19", "VGG with 19 layers", {2, 2, 4, 4, 4}, false},
    Variant{"vgg19_bn", "VGG with 19 layers and batch norm", {2, 2, 4, 4, 4}, true},
};

class Vgg final : public RecomputableChain {
 public:
  Vgg(const Variant& variant, const VggConfig& config, const ImageSample& sample) : batch_norm_(variant.batch_norm) {
    features_ = register_module("features", std::make_shared<Sequence>());
    std::int64_t channels = sample.channels;
    for (std::size_t stage = 0; stage < variant.layers.size(); ++stage) {
      const auto width = config.width << std::min<std::size_t>(stage, 3);
      for (int i = 0; i < variant.layers.at(stage); ++i) {
        features_->add(convolution({.in = channels, .out = width, .bias = true}));
        if (variant.batch_norm) features_->add(BatchNorm2d(width));
        features_->add_function(relu_in_place);
        channels = width;
      }
      features_->add_function([](const at::Tensor& x) { return at::max_pool2d(x, 2); });
    }
    features_->add_function([](const at::Tensor& x) { return at::adaptive_avg_pool2d(x, {7, 7}).flatten(1); });
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(Linear(channels * 7 * 7, config.hidden)).add_function(relu_in_place).add(Dropout(config.dropout));
    classifier_->add(Linear(config.hidden, config.hidden)).add_function(relu_in_place).add(Dropout(config.dropout));
    classifier_->add(Linear(config.hidden, sample.classes));
    add_blocks("features", *features_);
    add_blocks("classifier", *classifier_);
    initialize_convolutions(*this, torch::kFanOut);
    initialize_linear(*this, 0.01);
  }

  // Divides convolutions in pairs. Classifier layers are gathered, because dropout draws for all of their features.
  TensorPlan tensor_plan() const override {
    if (batch_norm_) return {};
    TensorPlan plan{{"classifier.0", "column_gathered"}, {"classifier.3", "column_gathered"}};
    std::vector<std::string> convolutions;
    for (const auto& layer : features_->layers()) {
      if (layer.module) convolutions.push_back("features." + layer.name);
    }
    for (std::size_t i = 0; i + 1 < convolutions.size(); i += 2) {
      plan[convolutions[i]] = "column";
      plan[convolutions[i + 1]] = "row";
    }
    return plan;
  }

 private:
  bool batch_norm_;
  std::shared_ptr<Sequence> features_, classifier_;
};

constexpr std::int64_t kSmallest = 32;  // pixels a side; the five pools reduce it to one

const bool vgg_registered = std::ranges::all_of(kVariants, [](const Variant& variant) {
  const auto make = [&variant](const VggConfig& config, const ModelSpec& spec) {
    return std::make_shared<Vgg>(variant, config, image_sample(variant.name, spec, kSmallest));
  };
  return Models::global().add<VggConfig>(variant.name, variant.help, make);
});

}  // namespace
}  // namespace phalanx
