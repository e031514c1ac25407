// Vision transformer (Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, section 3.1): input [n, c, side, side]
// float -> logits [n, classes]. Parameters class_token, conv_proj, encoder.pos_embedding,
// encoder.layers.encoder_layer_N.{ln_1, self_attention, ln_2, mlp.0, mlp.3}, encoder.ln and heads.head, with the
// initial values of torchvision's vit_b_16: the head starts at 0.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/linear.h"
#include "models/multihead_attention.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct VitConfig {
  std::int64_t patch = 16;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t hidden = 3072;
  double dropout = 0;
  double attention_dropout = 0;

  template <class V>
  void visit(V& v) {
    v("patch", patch, "side of the squares that an image is cut into", config::at_least(1));
    v("layers", layers, "number of transformer blocks", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(1));
    v("width", width, "embedding size, a multiple of heads", config::at_least(1));
    v("hidden", hidden, "width of the hidden layer of each block", config::at_least(1));
    v("dropout", dropout, "share left out of the embeddings and behind each layer", config::between(0, 0.99));
    v("attention_dropout", attention_dropout, "share left out of the weights of attention", config::between(0, 0.99));
  }
};

torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(1e-6));
}

class Layer final : public torch::nn::Module {
 public:
  explicit Layer(const VitConfig& config) {
    ln_1_ = register_module("ln_1", layer_norm(config.width));
    attention_ = register_module(
        "self_attention", std::make_shared<MultiheadAttention>(config.width, config.heads, config.attention_dropout));
    dropout_ = register_module("dropout", Dropout(config.dropout));
    ln_2_ = register_module("ln_2", layer_norm(config.width));
    const Linear first(config.width, config.hidden), second(config.hidden, config.width);
    mlp_ = register_module("mlp", std::make_shared<Sequence>());
    mlp_->add(first).add_function([](const at::Tensor& x) { return at::gelu(x); }).add(Dropout(config.dropout));
    mlp_->add(second).add(Dropout(config.dropout));
    const at::NoGradGuard no_grad;
    for (const auto& linear : {first, second}) {
      torch::nn::init::xavier_uniform_(linear->weight);
      at::Tensor(linear->bias).normal_(0, 1e-6);
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x = input + dropout_(attention_->forward(ln_1_(input)));
    return x + mlp_->forward(ln_2_(x));
  }

 private:
  torch::nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  std::shared_ptr<MultiheadAttention> attention_;
  Dropout dropout_{nullptr};
  std::shared_ptr<Sequence> mlp_;
};

class Vit final : public Network {
 public:
  Vit(const VitConfig& config, const ImageSample& sample) : drops_(config.dropout > 0) {
    const auto width = config.width, side = sample.height / config.patch;
    class_token_ = register_parameter("class_token", at::zeros({1, 1, width}));
    conv_proj_ = register_module(
        "conv_proj",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(sample.channels, width, config.patch).stride(config.patch)));
    const auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
    position_ = encoder->register_parameter("pos_embedding", at::empty({1, side * side + 1, width}).normal_(0, 0.02));
    dropout_ = encoder->register_module("dropout", Dropout(config.dropout));
    const auto layers = encoder->register_module("layers", std::make_shared<Sequence>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers->add("encoder_layer_" + std::to_string(i), std::make_shared<Layer>(config));
    }
    ln_ = encoder->register_module("ln", layer_norm(width));
    const auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
    head_ = heads->register_module("head", Linear(width, sample.classes));
    initialize(static_cast<double>(sample.channels * config.patch * config.patch));
    add_block("embedding", {"class_token", "conv_proj", "encoder.pos_embedding"},
              [this](const at::Tensor& image) { return embedded(image); });
    add_blocks("encoder.layers", *layers);
    add_block("head", {"encoder.ln", "heads"}, [this](const at::Tensor& x) { return head_(ln_(x).select(1, 0)); });
  }

  // What is left out inside of a feed-forward layer is drawn for all of its features.
  TensorPlan tensor_plan() const override {
    const std::string layer = "encoder.layers.encoder_layer_*.";
    TensorPlan plan{{layer + "self_attention", "column"}, {layer + "self_attention.out_proj", "row"}};
    if (!drops_) plan.insert({{layer + "mlp.0", "column"}, {layer + "mlp.3", "row"}});
    return plan;
  }

 private:
  at::Tensor embedded(const at::Tensor& image) {
    const at::Tensor patches = conv_proj_(image).flatten(2).transpose(1, 2);
    const at::Tensor token = class_token_.expand({patches.size(0), 1, patches.size(2)});
    return dropout_(at::cat({token, patches}, 1) + position_);
  }

  void initialize(double fan_in) {
    const at::NoGradGuard no_grad;
    truncated_normal(conv_proj_->weight, std::sqrt(1 / fan_in));
    conv_proj_->bias.zero_();
    head_->weight.zero_();
    head_->bias.zero_();
  }

  bool drops_;
  at::Tensor class_token_, position_;
  torch::nn::Conv2d conv_proj_{nullptr};
  Dropout dropout_{nullptr};
  torch::nn::LayerNorm ln_{nullptr};
  Linear head_{nullptr};
};

std::shared_ptr<Model> make_vit(const VitConfig& config, const ModelSpec& spec) {
  const auto sample = image_sample("vit_b_16", spec, config.patch);
  const auto refuse = [](const std::string& why) { throw ConfigError("model vit_b_16: " + why); };
  if (config.width % config.heads != 0) {
    refuse("width " + std::to_string(config.width) + " cannot be divided among " + std::to_string(config.heads) +
           " heads: use a multiple");
  }
  if (sample.height != sample.width || sample.height % config.patch != 0) {
    refuse("images of " + std::to_string(sample.height) + " x " + std::to_string(sample.width) +
           " pixels are no squares of patches of " + std::to_string(config.patch) + " pixels: set patch to a divisor");
  }
  return std::make_shared<Vit>(config, sample);
}

const bool registered =
    Models::global().add<VitConfig>("vit_b_16", "vision transformer, by default of the basic size", make_vit);

}  // namespace
}  // namespace phalanx
