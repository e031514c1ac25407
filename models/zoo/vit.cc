// SPDX-License-Identifier: Apache-2.0
// The vision transformer (Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, section 3.1). Input [n, c, side,
// side] float, output logits [n, classes]. It has two names, with different parameters and initial values:
//  - vit_b_16: torchvision's model of the same name, with one matrix for queries, keys and values; the head is
//    initialized with 0.
//  - vit: Hugging Face's ViTForImageClassification in the format of its files, with one matrix each for queries, keys
//    and values; weights are normal with standard deviation 0.02, biases 0, norms 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/conv.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/chain_network.h"
#include "models/dropout.h"
#include "models/image_sample.h"
#include "models/initial_values.h"
#include "models/layer_norm.h"
#include "models/linear.h"
#include "models/multihead_attention.h"
#include "models/projection.h"
#include "models/published_settings.h"
#include "models/refuse_sample.h"
#include "models/self_attention.h"

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
    v("dropout", dropout, "dropout rate of the embeddings and after each layer", config::between(0, 0.99));
    v("attention_dropout", attention_dropout, "dropout rate of the weights of attention", config::between(0, 0.99));
  }
};

constexpr double kDeviation = 0.02, kEpsilon = 1e-12;  // as in Hugging Face's library
constexpr double kTorchvisionEpsilon = 1e-6;

torch::nn::Conv2d patches(const VitConfig& config, const ImageSample& sample) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(sample.channels, config.width, config.patch).stride(config.patch));
}

// Prepends a token to the feature vectors of all patches: [n, width, rows, columns] -> [n, 1 + patches, width].
at::Tensor with_token(const at::Tensor& token, const at::Tensor& patches) {
  return at::cat({token.expand({patches.size(0), 1, patches.size(1)}), patches.flatten(2).transpose(1, 2)}, 1);
}

std::int64_t positions(const VitConfig& config, const ImageSample& sample) {
  const auto side = sample.height / config.patch;
  return side * side + 1;
}

class TorchvisionLayer final : public torch::nn::Module {
 public:
  explicit TorchvisionLayer(const VitConfig& config) {
    ln_1_ = register_module("ln_1", layer_norm(config.width, kTorchvisionEpsilon));
    attention_ = register_module(
        "self_attention", std::make_shared<MultiheadAttention>(config.width, config.heads, config.attention_dropout));
    dropout_ = register_module("dropout", Dropout(config.dropout));
    ln_2_ = register_module("ln_2", layer_norm(config.width, kTorchvisionEpsilon));
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

class TorchvisionVit final : public RecomputableChain {
 public:
  TorchvisionVit(const VitConfig& config, const ImageSample& sample) : drops_(config.dropout > 0) {
    const auto width = config.width;
    class_token_ = register_parameter("class_token", at::zeros({1, 1, width}));
    conv_proj_ = register_module("conv_proj", patches(config, sample));
    const auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
    position_ =
        encoder->register_parameter("pos_embedding", at::empty({1, positions(config, sample), width}).normal_(0, 0.02));
    dropout_ = encoder->register_module("dropout", Dropout(config.dropout));
    const auto layers = encoder->register_module("layers", std::make_shared<Sequence>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers->add("encoder_layer_" + std::to_string(i), std::make_shared<TorchvisionLayer>(config));
    }
    ln_ = encoder->register_module("ln", layer_norm(width, kTorchvisionEpsilon));
    const auto heads = register_module("heads", std::make_shared<torch::nn::Module>());
    head_ = heads->register_module("head", Linear(width, sample.classes));
    initialize(static_cast<double>(sample.channels * config.patch * config.patch));
    add_block("embedding", {"class_token", "conv_proj", "encoder.pos_embedding"},
              [this](const at::Tensor& image) { return embedded(image); });
    add_blocks("encoder.layers", *layers);
    add_block("head", {"encoder.ln", "heads"}, [this](const at::Tensor& x) { return head_(ln_(x).select(1, 0)); });
  }

  // Dropout inside a feed-forward layer draws for all of its features, so a layer with dropout is not sharded.
  TensorPlan tensor_plan() const override {
    const std::string layer = "encoder.layers.encoder_layer_*.";
    TensorPlan plan{{layer + "self_attention", "column"}, {layer + "self_attention.out_proj", "row"}};
    if (!drops_) plan.insert({{layer + "mlp.0", "column"}, {layer + "mlp.3", "row"}});
    return plan;
  }

 private:
  at::Tensor embedded(const at::Tensor& image) {
    return dropout_(with_token(class_token_, conv_proj_(image)) + position_);
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

// A layer {dense} followed by dropout.
class Dense final : public torch::nn::Module {
 public:
  Dense(std::int64_t in, std::int64_t out, double dropout, std::int64_t unit = 1) {
    dense_ = register_module("dense", std::make_shared<Projection>(Projection::Options{
                                          .in = in, .out = out, .deviation = kDeviation, .grain = {1, unit}}));
    dropout_ = register_module("dropout", Dropout(dropout));
  }

  at::Tensor forward(const at::Tensor& x) { return dropout_(dense_->forward(x)); }

 private:
  std::shared_ptr<Projection> dense_;
  Dropout dropout_{nullptr};
};

class HuggingFaceLayer final : public torch::nn::Module {
 public:
  explicit HuggingFaceLayer(const VitConfig& config) {
    const auto attention = register_module("attention", std::make_shared<torch::nn::Module>());
    attention_ = attention->register_module(
        "attention", std::make_shared<SelfAttention>(SelfAttention::Options{.width = config.width,
                                                                            .heads = config.heads,
                                                                            .deviation = kDeviation,
                                                                            .dropout = config.attention_dropout}));
    projected_ = attention->register_module(
        "output", std::make_shared<Dense>(config.width, config.width, config.dropout, config.width / config.heads));
    before_ = register_module("layernorm_before", layer_norm(config.width, kEpsilon));
    after_ = register_module("layernorm_after", layer_norm(config.width, kEpsilon));
    intermediate_ = register_module("intermediate", std::make_shared<Dense>(config.width, config.hidden, 0));
    output_ = register_module("output", std::make_shared<Dense>(config.hidden, config.width, config.dropout));
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x = input + projected_->forward(attention_->forward(before_(input)));
    return x + output_->forward(at::gelu(intermediate_->forward(after_(x))));
  }

 private:
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<Dense> projected_, intermediate_, output_;
  torch::nn::LayerNorm before_{nullptr}, after_{nullptr};
};

std::vector<PublishedSetting> published(const VitConfig& config, const ImageSample& sample) {
  const auto text = [](const char* value) { return PublishedSetting::Value(std::string(value)); };
  return {{"model_type", {text("vit")}},
          {"image_size", {sample.height}, std::int64_t{224}},
          {"patch_size", {config.patch}, {}, "patch"},
          {"num_channels", {sample.channels}},
          {"hidden_size", {config.width}, {}, "width"},
          {"intermediate_size", {config.hidden}, {}, "hidden"},
          {"num_hidden_layers", {config.layers}, {}, "layers"},
          {"num_attention_heads", {config.heads}, std::int64_t{12}, "heads"},
          {"hidden_act", {text("gelu"), text("gelu_python")}, text("gelu")},
          {"layer_norm_eps", {kEpsilon}, kEpsilon},
          {"qkv_bias", {true}, true}};
}

class HuggingFaceVit final : public RecomputableChain, public Published {
 public:
  HuggingFaceVit(const VitConfig& config, const ImageSample& sample)
      : layers_(config.layers), published_(published(config, sample)) {
    const auto width = config.width;
    const auto body = register_module("vit", std::make_shared<torch::nn::Module>());
    const auto embeddings = body->register_module("embeddings", std::make_shared<torch::nn::Module>());
    const auto normal = [](at::IntArrayRef shape) { return at::empty(shape).normal_(0, kDeviation); };
    token_ = embeddings->register_parameter("cls_token", normal({1, 1, width}));
    position_ = embeddings->register_parameter("position_embeddings", normal({1, positions(config, sample), width}));
    projection_ = embeddings->register_module("patch_embeddings", std::make_shared<torch::nn::Module>())
                      ->register_module("projection", patches(config, sample));
    dropout_ = embeddings->register_module("dropout", Dropout(config.dropout));
    const auto layers = body->register_module("encoder", std::make_shared<torch::nn::Module>())
                            ->register_module("layer", std::make_shared<Sequence>());
    for (std::int64_t i = 0; i < layers_; ++i) layers->add(std::make_shared<HuggingFaceLayer>(config));
    norm_ = body->register_module("layernorm", layer_norm(width, kEpsilon));
    classifier_ = register_module("classifier", Linear(width, sample.classes));
    initialize();
    add_block("embedding", {"vit.embeddings"},
              [this](const at::Tensor& image) { return dropout_(with_token(token_, projection_(image)) + position_); });
    add_blocks("vit.encoder.layer", *layers);
    add_block("head", {"vit.layernorm", "classifier"},
              [this](const at::Tensor& x) { return classifier_(norm_(x).select(1, 0)); });
  }

  const std::vector<PublishedSetting>& published_settings() const override { return published_; }

  // In transformers 5, model.state_dict() uses these names, but save_pretrained() writes the names of this model.
  std::vector<std::pair<std::string, std::string>> names_of_other_versions() const override {
    const std::string layer = R"(^vit\.layers\.(\d+)\.)", ours = "vit.encoder.layer.$1.";
    return {{layer + R"(attention\.q_proj\.)", ours + "attention.attention.query."},
            {layer + R"(attention\.k_proj\.)", ours + "attention.attention.key."},
            {layer + R"(attention\.v_proj\.)", ours + "attention.attention.value."},
            {layer + R"(attention\.o_proj\.)", ours + "attention.output.dense."},
            {layer + R"(mlp\.fc1\.)", ours + "intermediate.dense."},
            {layer + R"(mlp\.fc2\.)", ours + "output.dense."},
            {layer, ours}};
  }

  TensorPlan tensor_plan() const override {
    return plan_of_encoder("vit.encoder.layer.", layers_, "attention.attention");
  }

 private:
  void initialize() {
    const at::NoGradGuard no_grad;
    for (const auto& weight : {projection_->weight, classifier_->weight}) at::Tensor(weight).normal_(0, kDeviation);
    for (const auto& bias : {projection_->bias, classifier_->bias}) at::Tensor(bias).zero_();
  }

  std::int64_t layers_;
  std::vector<PublishedSetting> published_;
  at::Tensor token_, position_;
  torch::nn::Conv2d projection_{nullptr};
  Dropout dropout_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  Linear classifier_{nullptr};
};

template <class Made>
std::shared_ptr<Made> make(const std::string& name, const VitConfig& config, const ModelSpec& spec) {
  const auto sample = image_sample(name, spec, config.patch);
  refuse_uneven_heads(name, config.width, config.heads);
  if (sample.height != sample.width || sample.height % config.patch != 0) {
    throw ConfigError("model " + name + ": images of " + std::to_string(sample.height) + " x " +
                      std::to_string(sample.width) + " pixels are not square or cannot be cut into patches of " +
                      std::to_string(config.patch) + " pixels: set patch to a divisor");
  }
  return std::make_shared<Made>(config, sample);
}

template <class Made>
bool add(const std::string& name, const std::string& help) {
  return Models::global().add<VitConfig>(
      name, help, [name](const VitConfig& config, const ModelSpec& spec) { return make<Made>(name, config, spec); });
}

const bool vit_registered =
    add<TorchvisionVit>("vit_b_16", "vision transformer with torchvision's names, by default of the base size") &&
    add<HuggingFaceVit>("vit", "vision transformer with Hugging Face's names, by default of the base size");

}  // namespace
}  // namespace phalanx
