// SPDX-License-Identifier: Apache-2.0
// A deep convolutional generative adversarial network (Radford et al. 2016, Unsupervised Representation Learning with
// Deep Convolutional Generative Adversarial Networks, arXiv:1511.06434, section 3) for the task adversarial. Inputs:
// images [n, c, side, side] from -1 to 1 and noise [n, k]. Outputs: scores [n] of the images, scores [n] of the images
// generated from the noise, and the generated images [n, c, side, side].
//
// A side is 4 to 7 times a power of 2. The generator makes a square of 4 to 7 pixels from the noise and then doubles
// it; the discriminator does the reverse. Parameters generator.N and discriminator.N are as in PyTorch's example dcgan,
// which is this model for a side of 64. So are the initial values: normal with standard deviation 0.02, and mean 1 for
// weights of batch norm.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/modules/conv.h>

#include <memory>
#include <string>

#include "framework/base/error.h"
#include "models/batch_norm.h"
#include "models/generative.h"
#include "models/network.h"
#include "models/sequence.h"

namespace phalanx {
namespace {

struct DcganConfig {
  std::int64_t width = 64;

  template <class V>
  void visit(V& v) {
    v("width", width, "channels at half of the side; twice as many at a quarter, and so on", config::at_least(1));
  }
};

// Returns options for a kernel of 4 that doubles or halves a side, or, with `square`, for a kernel that turns one pixel
// into a square of this side or the reverse.
template <class Options>
Options layer(std::int64_t in, std::int64_t out, std::int64_t square = 0) {
  return Options(in, out, square > 0 ? square : 4).stride(square > 0 ? 1 : 2).padding(square > 0 ? 0 : 1).bias(false);
}

torch::nn::ConvTranspose2d up(std::int64_t in, std::int64_t out, std::int64_t square = 0) {
  return torch::nn::ConvTranspose2d(layer<torch::nn::ConvTranspose2dOptions>(in, out, square));
}

torch::nn::Conv2d down(std::int64_t in, std::int64_t out, std::int64_t square = 0) {
  return torch::nn::Conv2d(layer<torch::nn::Conv2dOptions>(in, out, square));
}

BatchNorm2d norm(std::int64_t channels) { return BatchNorm2d(torch::nn::BatchNormOptions(channels)); }

at::Tensor leaky(const at::Tensor& x) { return at::leaky_relu(x, 0.2); }

class Dcgan final : public Network, public Generative {
 public:
  Dcgan(const DcganConfig& config, std::int64_t channels, std::int64_t square, int doublings, std::int64_t noise) {
    const auto width = [&](int level) { return config.width << level; };  // level 0 has half the side
    generator_ = register_module("generator", std::make_shared<Sequence>());
    discriminator_ = register_module("discriminator", std::make_shared<Sequence>());
    generator_->add(up(noise, width(doublings - 1), square));
    for (int level = doublings - 1; level >= 0; --level) {
      generator_->add(norm(width(level))).add_function([](const at::Tensor& x) { return at::relu(x); });
      generator_->add(up(width(level), level > 0 ? width(level - 1) : channels));
    }
    generator_->add_function([](const at::Tensor& x) { return at::tanh(x); });
    discriminator_->add(down(channels, width(0))).add_function(leaky);
    for (int level = 1; level < doublings; ++level) {
      discriminator_->add(down(width(level - 1), width(level))).add(norm(width(level))).add_function(leaky);
    }
    discriminator_->add(down(width(doublings - 1), 1, square));
    const at::NoGradGuard no_grad;
    for (auto& [name, parameter] : Network::named_parameters()) {
      if (parameter.dim() == 4) at::Tensor(parameter).normal_(0, 0.02);
      if (parameter.dim() == 1 && name.ends_with("weight")) at::Tensor(parameter).normal_(1, 0.02);
    }
  }

  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor made = samples(inputs.at(1));
    return {score(inputs.at(0)), score(made), made};
  }

  at::Tensor samples(const at::Tensor& noise) override {
    return generator_->forward(noise.unsqueeze(-1).unsqueeze(-1));
  }

 private:
  at::Tensor score(const at::Tensor& images) { return discriminator_->forward(images).flatten(); }

  std::shared_ptr<Sequence> generator_, discriminator_;
};

std::shared_ptr<Dcgan> make_dcgan(const DcganConfig& config, const ModelSpec& spec) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 3 || !spec.outputs[0].shape.empty() ||
      spec.inputs[0].shape.size() != 3) {
    throw ConfigError(
        "model dcgan needs the task adversarial, of images with noise: task: adversarial, dataset: {name: with_noise, "
        "of: {name: ...}}");
  }
  const auto& image = spec.inputs[0].shape;
  auto square = image[1];
  int doublings = 0;
  for (; square > 7 && square % 2 == 0; square /= 2) ++doublings;
  if (image[1] != image[2] || doublings == 0 || square > 7 || square < 4) {
    throw ConfigError("model dcgan: images of " + std::to_string(image[1]) + " x " + std::to_string(image[2]) +
                      " pixels; it makes squares whose side is 4 to 7 times a power of 2, such as 28, 32 or 64");
  }
  return std::make_shared<Dcgan>(config, image[0], square, doublings, spec.inputs[1].shape[0]);
}

const bool dcgan_registered = Models::global().add<DcganConfig>(
    "dcgan", "convolutional generator and discriminator of images, for the task adversarial", make_dcgan);

}  // namespace
}  // namespace phalanx
