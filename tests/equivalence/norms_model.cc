// SPDX-License-Identifier: Apache-2.0
// A model for tests of training that has batch norm and no kinks.
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "framework/base/config/no_fields.h"
#include "models/batch_norm.h"
#include "models/network.h"

namespace phalanx {
namespace {

// Two convolutions, each followed by batch norm; the second is a branch, as in a residual block. It has no kinks for
// the reason that smooth_model.cc gives.
class Norms final : public Network {
 public:
  explicit Norms(const ModelSpec& spec) {
    conv1_ = register_module("conv1",
                             torch::nn::Conv2d(torch::nn::Conv2dOptions(spec.inputs[0].shape[0], 4, 3).bias(false)));
    bn1_ = register_module("bn1", BatchNorm2d(4));
    conv2_ = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 3).padding(1).bias(false)));
    bn2_ = register_module("bn2", BatchNorm2d(4));
    fc_ = register_module("fc", torch::nn::Linear(4, spec.outputs[0].shape[0]));
  }

  at::Tensor forward(at::Tensor input) override {
    const at::Tensor x = bn1_(conv1_(input)).tanh();
    return fc_((x + bn2_(conv2_(x))).tanh().mean({2, 3}));
  }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  BatchNorm2d bn1_{nullptr}, bn2_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

const bool norms_model_registered = Models::global().add<NoFields>(
    "norms_under_test", "batch norm",
    [](const NoFields&, const ModelSpec& spec) { return std::make_shared<Norms>(spec); });

}  // namespace
}  // namespace phalanx
