// SPDX-License-Identifier: Apache-2.0
// The model "smooth_under_test": a small LeNet-5 with tanh and mean pooling, as in the original. It has no kinks: if
// rounding moves a value to the other side of the kink of a ReLU or max pooling, two runs of the same training diverge
// by far more than rounding, at steps that depend on the processor.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "framework/base/config/no_fields.h"
#include "models/linear.h"
#include "models/network.h"

namespace phalanx {
namespace {

class Smooth final : public Network {
 public:
  explicit Smooth(const ModelSpec& spec) {
    const auto rows = after_convolutions(spec.inputs[0].shape[1]),
               columns = after_convolutions(spec.inputs[0].shape[2]);
    conv1_ =
        register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.inputs[0].shape[0], 4, 5).stride(2)));
    conv2_ = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 8, 3)));
    fc1_ = register_module("fc1", Linear(8 * rows * columns, 120));
    fc2_ = register_module("fc2", Linear(120, 84));
    fc3_ = register_module("fc3", Linear(84, spec.outputs[0].shape[0]));
  }

  at::Tensor forward(at::Tensor input) override {
    const at::Tensor x = at::avg_pool2d(at::tanh(conv2_(at::tanh(conv1_(input)))), 2).flatten(1);
    return fc3_(at::tanh(fc2_(at::tanh(fc1_(x)))));
  }

 private:
  static std::int64_t after_convolutions(std::int64_t length) { return ((length - 5) / 2 + 1 - 2) / 2; }

  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

const bool smooth_model_registered = Models::global().add<NoFields>(
    "smooth_under_test", "a small LeNet-5 without kinks",
    [](const NoFields&, const ModelSpec& spec) { return std::make_shared<Smooth>(spec); });

}  // namespace
}  // namespace phalanx
