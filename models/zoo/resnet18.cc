// ResNet-18 (He et al. 2015, Deep Residual Learning for Image Recognition): input [n, c, h, w] float, dense or
// channels_last -> logits [n, classes]. Parameters, buffers, their names and their initial values are those of
// torchvision's resnet18. For small pictures the stem is one 3 x 3 convolution, as in section 4.2 of the paper; with
// stem: imagenet it is 7 x 7 with stride 2 and a max pool, as in section 4.1.
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>

#include <memory>
#include <string>
#include <vector>

#include "models/batch_norm.h"
#include "models/linear.h"
#include "models/network.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

struct ResNet18Config {
  std::string stem = "small";

  template <class V>
  void visit(V& v) {
    v("stem", stem, "small: 3 x 3 convolution, for images of about 32 pixels; imagenet: 7 x 7, stride 2 and max pool",
      config::one_of({"small", "imagenet"}));
  }
};

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  auto options = torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false);
  return torch::nn::Conv2d(options);
}

// What is added where a block changes the shape. "0" and "1" because torchvision has a Sequential here.
class Downsample final : public torch::nn::Module {
 public:
  Downsample(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv_ = register_module("0", convolution(in, out, 1, stride));
    norm_ = register_module("1", BatchNorm2d(out));
  }

  at::Tensor forward(const at::Tensor& x) { return norm_(conv_(x)); }

 private:
  torch::nn::Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};
};

// Two convolutions, and what came in added to what they make of it.
class Residual final : public torch::nn::Module {
 public:
  Residual(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1_ = register_module("conv1", convolution(in, out, 3, stride));
    bn1_ = register_module("bn1", BatchNorm2d(out));
    conv2_ = register_module("conv2", convolution(out, out, 3, 1));
    bn2_ = register_module("bn2", BatchNorm2d(out));
    if (stride == 1 && in == out) return;
    downsample_ = register_module("downsample", std::make_shared<Downsample>(in, out, stride));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor change = bn2_(conv2_(bn1_(conv1_(x)).relu_()));
    return (change + (downsample_ ? downsample_->forward(x) : x)).relu_();
  }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  BatchNorm2d bn1_{nullptr}, bn2_{nullptr};
  std::shared_ptr<Downsample> downsample_;
};

class ResNet18 final : public Network {
 public:
  ResNet18(const ResNet18Config& config, std::int64_t channels, std::int64_t classes)
      : imagenet_(config.stem == "imagenet") {
    conv1_ = register_module("conv1", imagenet_ ? convolution(channels, 64, 7, 2) : convolution(channels, 64, 3, 1));
    bn1_ = register_module("bn1", BatchNorm2d(64));
    add_block("stem", {"conv1", "bn1"}, [this](const at::Tensor& image) {
      const at::Tensor x = bn1_(conv1_(image)).relu_();
      return imagenet_ ? at::max_pool2d(x, 3, 2, 1) : x;
    });
    add_layer(1, 64, 64);
    add_layer(2, 64, 128);
    add_layer(3, 128, 256);
    add_layer(4, 256, 512);
    fc_ = register_module("fc", Linear(512, classes));
    add_block("head", {"fc"}, [this](const at::Tensor& x) { return fc_(x.mean({2, 3})); });
    initialize();
  }

 private:
  // Two blocks, of which the first halves height and width in all layers but the first.
  void add_layer(int number, std::int64_t in, std::int64_t out) {
    const auto name = "layer" + std::to_string(number);
    const auto layer = register_module(name, std::make_shared<torch::nn::Module>());
    add_residual(name, "0", layer->register_module("0", std::make_shared<Residual>(in, out, in == out ? 1 : 2)));
    add_residual(name, "1", layer->register_module("1", std::make_shared<Residual>(out, out, 1)));
  }

  void add_residual(const std::string& layer, const std::string& number, const std::shared_ptr<Residual>& residual) {
    const auto name = layer + "." + number;
    add_block(name, {name}, [block = residual.get()](const at::Tensor& x) { return block->forward(x); });
  }

  // After all modules have drawn values of their own, in the order in which they are registered: so a seed gives the
  // values that torchvision has with it.
  void initialize() {
    for (const auto& module : modules(/*include_self=*/false)) {
      if (const auto* conv = module->as<torch::nn::Conv2d>()) {
        torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  bool imagenet_;
  torch::nn::Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  Linear fc_{nullptr};
};

std::shared_ptr<Model> make_resnet18(const ResNet18Config& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("resnet18", spec);
  // Batch norm of a single picture needs more than one pixel where pictures are smallest: in layer4.
  const std::int64_t smallest = config.stem == "imagenet" ? 33 : 9;
  const bool image = input.shape.size() == 3 && input.dtype == at::kFloat;
  if (!image || input.shape[1] < smallest || input.shape[2] < smallest) {
    const auto side = std::to_string(smallest);
    refuse_sample("resnet18 with stem " + config.stem,
                  "images [channels, height, width] of at least " + side + " x " + side + " pixels", input);
  }
  return std::make_shared<ResNet18>(config, input.shape[0], classes_of("resnet18", output));
}

const bool registered =
    Models::global().add<ResNet18Config>("resnet18", "ResNet-18, for small or large images", make_resnet18);

}  // namespace
}  // namespace phalanx
