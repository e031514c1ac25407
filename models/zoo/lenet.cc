// LeNet-5 (LeCun et al. 1998, Gradient-Based Learning Applied to Document Recognition, section II.B) with ReLU and max
// pooling in place of the original's: input [n, c, h, w] float -> logits [n, classes].
// Parameters conv{1,2}.{weight, bias}, fc{1,2,3}.{weight, bias}.
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>

#include "framework/base/config/no_fields.h"
#include "models/linear.h"
#include "models/network.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

class LeNet final : public Network {
 public:
  explicit LeNet(const SampleSpec& sample) {
    const auto channels = sample.input[0], height = sample.input[1], width = sample.input[2];
    conv1_ = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 6, 5).padding(2)));
    conv2_ = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)));
    fc1_ = register_module("fc1", Linear(16 * after_pools(height) * after_pools(width), 120));
    fc2_ = register_module("fc2", Linear(120, 84));
    fc3_ = register_module("fc3", Linear(84, sample.classes));
  }

  at::Tensor forward(at::Tensor input) override {
    at::Tensor x = at::max_pool2d(at::relu(conv1_(input)), 2);
    x = at::max_pool2d(at::relu(conv2_(x)), 2).flatten(1);
    return fc3_(at::relu(fc2_(at::relu(fc1_(x)))));
  }

 private:
  static std::int64_t after_pools(std::int64_t length) { return (length / 2 - 4) / 2; }

  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

constexpr std::int64_t kSmallest = 12;  // pixels a side; what the two convolutions and pools leave something of

std::shared_ptr<Model> make_lenet(const NoFields&, const SampleSpec& sample) {
  const bool image = sample.input.size() == 3 && sample.dtype == at::kFloat;
  if (!image || sample.input[1] < kSmallest || sample.input[2] < kSmallest) {
    refuse_sample("lenet", "images [channels, height, width] of at least 12 x 12 pixels", sample);
  }
  return std::make_shared<LeNet>(sample);
}

const bool registered = Models::global().add<NoFields>("lenet", "LeNet-5 with ReLU, for small images", make_lenet);

}  // namespace
}  // namespace phalanx
