// SPDX-License-Identifier: Apache-2.0
// LeNet-5 (LeCun et al. 1998, Gradient-Based Learning Applied to Document Recognition, section II.B) with ReLU and max
// pooling instead of the original functions. Input [n, c, h, w] float, output logits [n, classes]. Parameters
// conv{1,2}.{weight, bias}, fc{1,2,3}.{weight, bias}.
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include "framework/base/config/no_fields.h"
#include "models/chain_network.h"
#include "models/convolution.h"
#include "models/linear.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

class LeNet final : public RecomputableChain {
 public:
  LeNet(const TensorSpec& image, std::int64_t classes) {
    const auto channels = image.shape[0], height = image.shape[1], width = image.shape[2];
    conv1_ = register_module("conv1", Conv2d(torch::nn::Conv2dOptions(channels, 6, 5).padding(2)));
    conv2_ = register_module("conv2", Conv2d(torch::nn::Conv2dOptions(6, 16, 5)));
    fc1_ = register_module("fc1", Linear(16 * after_pools(height) * after_pools(width), 120));
    fc2_ = register_module("fc2", Linear(120, 84));
    fc3_ = register_module("fc3", Linear(84, classes));
    add_block("conv1", {"conv1"}, [this](const at::Tensor& x) { return pooled(conv1_(x)); });
    add_block("conv2", {"conv2"}, [this](const at::Tensor& x) { return pooled(conv2_(x)).flatten(1); });
    add_block("fc1", {"fc1"}, [this](const at::Tensor& x) { return at::relu(fc1_(x)); });
    add_block("fc2", {"fc2"}, [this](const at::Tensor& x) { return at::relu(fc2_(x)); });
    add_block("fc3", {"fc3"}, [this](const at::Tensor& x) { return fc3_(x); });
  }

  TensorPlan tensor_plan() const override {
    return {{"conv1", "column"}, {"conv2", "row"}, {"fc1", "column"}, {"fc2", "row"}};
  }

 private:
  static at::Tensor pooled(const at::Tensor& x) { return at::max_pool2d(at::relu(x), 2); }
  static std::int64_t after_pools(std::int64_t length) { return (length / 2 - 4) / 2; }

  Conv2d conv1_{nullptr}, conv2_{nullptr};
  Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

// Pixels a side; the smallest side for which two convolutions and pools have an output.
constexpr std::int64_t kSmallest = 12;

std::shared_ptr<LeNet> make_lenet(const NoFields&, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("lenet", spec);
  const bool image = input.shape.size() == 3 && input.dtype == at::kFloat;
  if (!image || input.shape[1] < kSmallest || input.shape[2] < kSmallest) {
    refuse_sample("lenet", "images [channels, height, width] of at least 12 x 12 pixels", input);
  }
  return std::make_shared<LeNet>(input, classes_of("lenet", output));
}

const bool lenet_registered =
    Models::global().add<NoFields>("lenet", "LeNet-5 with ReLU, for small images", make_lenet);

}  // namespace
}  // namespace phalanx
