// SPDX-License-Identifier: Apache-2.0
// AlexNet, as in Krizhevsky 2014, One weird trick for parallelizing convolutional neural networks (one column, without
// local response normalisation), after Krizhevsky et al. 2012. Input [n, c, h, w] float, output logits [n, classes].
// Parameters features.{0,3,6,8,10} and classifier.{1,4,6}, with torchvision's initial values.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "models/chain_network.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/linear.h"
#include "models/relu.h"

namespace phalanx {
namespace {

struct AlexNetConfig {
  std::int64_t hidden = 4096;
  double dropout = 0.5;

  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "width of the two hidden layers of the classifier", config::at_least(1));
    v("dropout", dropout, "dropout rate before these layers", config::between(0, 0.99));
  }
};

torch::nn::Conv2d convolved(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(stride > 1 ? 2 : kernel / 2));
}

at::Tensor pool(const at::Tensor& x) { return at::max_pool2d(x, 3, 2); }

class AlexNet final : public RecomputableChain {
 public:
  AlexNet(const AlexNetConfig& config, const ImageSample& sample) {
    features_ = register_module("features", std::make_shared<Sequence>());
    features_->add(convolved(sample.channels, 64, 11, 4)).add_function(relu_in_place).add_function(pool);
    features_->add(convolved(64, 192, 5)).add_function(relu_in_place).add_function(pool);
    features_->add(convolved(192, 384, 3)).add_function(relu_in_place);
    features_->add(convolved(384, 256, 3)).add_function(relu_in_place);
    features_->add(convolved(256, 256, 3)).add_function(relu_in_place).add_function(pool);
    features_->add_function([](const at::Tensor& x) { return at::adaptive_avg_pool2d(x, {6, 6}).flatten(1); });
    classifier_ = register_module("classifier", std::make_shared<Sequence>());
    classifier_->add(Dropout(config.dropout)).add(Linear(256 * 6 * 6, config.hidden)).add_function(relu_in_place);
    classifier_->add(Dropout(config.dropout)).add(Linear(config.hidden, config.hidden)).add_function(relu_in_place);
    classifier_->add(Linear(config.hidden, sample.classes));
    add_blocks("features", *features_);
    add_blocks("classifier", *classifier_);
  }

 private:
  std::shared_ptr<Sequence> features_, classifier_;
};

constexpr std::int64_t kSmallest = 63;  // pixels a side; the smallest side for which the pooling layers have an output

const bool alexnet_registered = Models::global().add<AlexNetConfig>(
    "alexnet", "AlexNet, for large images", [](const AlexNetConfig& config, const ModelSpec& spec) {
      return std::make_shared<AlexNet>(config, image_sample("alexnet", spec, kSmallest));
    });

}  // namespace
}  // namespace phalanx
