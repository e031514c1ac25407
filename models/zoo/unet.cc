// SPDX-License-Identifier: Apache-2.0
// U-Net (Ronneberger et al. 2015, U-Net: Convolutional Networks for Biomedical Image Segmentation, figure 1) with
// padded convolutions and batch norm. Input [n, c, h, w] float, output scores [n, classes, h, w] of each pixel.
// Parameters and buffers have the names of github.com/milesial/Pytorch-UNet without bilinear upsampling:
// inc.double_conv.N, down{1..4}.maxpool_conv.1.double_conv.N, up{1..4}.{up, conv.double_conv.N}, outc.conv. Initial
// values are LibTorch's.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/batch_norm.h"
#include "models/convolution.h"
#include "models/network.h"
#include "models/refuse_sample.h"
#include "models/relu.h"

namespace phalanx {
namespace {

struct UNetConfig {
  std::int64_t width = 64;

  template <class V>
  void visit(V& v) {
    v("width", width, "channels at full resolution; each halving doubles them", config::at_least(1));
  }
};

class DoubleConvolution final : public torch::nn::Module {
 public:
  DoubleConvolution(std::int64_t in, std::int64_t out) {
    layers_ = register_module("double_conv", std::make_shared<Sequence>());
    layers_->add(convolution({.in = in, .out = out})).add(BatchNorm2d(out)).add_function(relu_in_place);
    layers_->add(convolution({.in = out, .out = out})).add(BatchNorm2d(out)).add_function(relu_in_place);
  }

  at::Tensor forward(const at::Tensor& x) { return layers_->forward(x); }

 private:
  std::shared_ptr<Sequence> layers_;
};

// Doubles height and width and concatenates the features of that size from the way down.
class Up final : public torch::nn::Module {
 public:
  Up(std::int64_t in, std::int64_t out) {
    up_ = register_module("up", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(in, in / 2, 2).stride(2)));
    conv_ = register_module("conv", std::make_shared<DoubleConvolution>(in, out));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& across) {
    const at::Tensor wide = up_(x);
    const auto rows = across.size(2) - wide.size(2), columns = across.size(3) - wide.size(3);
    const std::array<std::int64_t, 4> padding{columns / 2, columns - columns / 2, rows / 2, rows - rows / 2};
    return conv_->forward(at::cat({across, at::constant_pad_nd(wide, padding)}, 1));
  }

 private:
  torch::nn::ConvTranspose2d up_{nullptr};
  std::shared_ptr<DoubleConvolution> conv_;
};

class UNet final : public Network {
 public:
  UNet(std::int64_t width, std::int64_t channels, std::int64_t classes) {
    inc_ = register_module("inc", std::make_shared<DoubleConvolution>(channels, width));
    for (int level = 0; level < kLevels; ++level) {
      const auto down = std::make_shared<Sequence>();
      down->add_function([](const at::Tensor& x) { return at::max_pool2d(x, 2); });
      down->add(std::make_shared<DoubleConvolution>(width << level, width << (level + 1)));
      const auto holder = register_module("down" + std::to_string(level + 1), std::make_shared<torch::nn::Module>());
      downs_.push_back(holder->register_module("maxpool_conv", down));
    }
    for (int level = kLevels; level > 0; --level) {
      const auto name = "up" + std::to_string(kLevels - level + 1);
      ups_.push_back(register_module(name, std::make_shared<Up>(width << level, width << (level - 1))));
    }
    const auto outc = register_module("outc", std::make_shared<torch::nn::Module>());
    conv_ = outc->register_module("conv", convolution({.in = width, .out = classes, .kernel = 1, .bias = true}));
  }

  at::Tensor forward(at::Tensor input) override {
    std::vector<at::Tensor> levels{inc_->forward(input)};
    for (const auto& down : downs_) levels.push_back(down->forward(levels.back()));
    at::Tensor x = levels.back();
    for (std::size_t i = 0; i < ups_.size(); ++i) x = ups_[i]->forward(x, levels[levels.size() - 2 - i]);
    return conv_(x);
  }

 private:
  static constexpr int kLevels = 4;

  std::shared_ptr<DoubleConvolution> inc_;
  std::vector<std::shared_ptr<Sequence>> downs_;
  std::vector<std::shared_ptr<Up>> ups_;
  Conv2d conv_{nullptr};
};

// Pixels a side. Batch norm of a single image needs more than one pixel at the bottom.
constexpr std::int64_t kSmallest = 32;

std::shared_ptr<UNet> make_unet(const UNetConfig& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("unet", spec);
  const auto& image = input.shape;
  if (image.size() != 3 || input.dtype != at::kFloat || image[1] < kSmallest || image[2] < kSmallest) {
    refuse_sample("unet", "images [channels, height, width] of at least 32 x 32 pixels", input);
  }
  if (output.shape.size() != 3 || output.shape[1] != image[1] || output.shape[2] != image[2]) {
    throw ConfigError(
        "model unet gives scores for each pixel, as the task segmentation needs them; this task needs something else");
  }
  return std::make_shared<UNet>(config.width, image[0], output.shape[0]);
}

const bool unet_registered = Models::global().add<UNetConfig>("unet", "U-Net, for the task segmentation", make_unet);

}  // namespace
}  // namespace phalanx
