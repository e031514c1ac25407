// SPDX-License-Identifier: Apache-2.0
// A bidirectional transformer (Devlin et al. 2019, BERT: Pre-training of Deep Bidirectional Transformers for Language
// Understanding, arXiv:1810.04805) with its head for masked tokens. Input [n, t] int64 tokens, t <= context; output
// logits [n, t, classes] of the original tokens. Each position attends to its whole sample; all positions are in the
// first segment.
//
// Parameters have the names and layouts of Hugging Face's BertForMaskedLM. Its cls.predictions.decoder is not listed,
// because it consists of bert.embeddings.word_embeddings and cls.predictions.bias. Initial values: normal with standard
// deviation 0.02; biases 0, norms 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "models/attention.h"
#include "models/chain_network.h"
#include "models/dropout.h"
#include "models/layer_norm.h"
#include "models/projection.h"
#include "models/published_settings.h"
#include "models/refuse_sample.h"
#include "models/self_attention.h"
#include "models/token_embedding.h"

namespace phalanx {
namespace {

constexpr double kDeviation = 0.02;

struct BertConfig {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t hidden = 0;
  double dropout = 0;
  double attention_dropout = 0;
  std::int64_t padding = -1;
  double epsilon = 1e-12;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "number of transformer blocks", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(1));
    v("width", width, "embedding size, a multiple of heads", config::at_least(1));
    v("hidden", hidden, "features of the feed-forward layers; 0: 4 times width", config::at_least(0));
    v("dropout", dropout, "dropout rate of the embeddings and of what each layer adds", config::between(0, 0.99));
    v("attention_dropout", attention_dropout, "dropout rate of the weights of attention", config::between(0, 0.99));
    v("padding", padding, "token that pads samples and gets no attention; -1: none", config::at_least(-1));
    v("epsilon", epsilon, "added to the variance in norms", config::above(0));
  }

  std::int64_t hidden_features() const { return hidden > 0 ? hidden : 4 * width; }
};

std::shared_ptr<Projection> linear(std::int64_t in, std::int64_t out, std::int64_t unit = 1) {
  return std::make_shared<Projection>(
      Projection::Options{.in = in, .out = out, .deviation = kDeviation, .grain = {1, unit}});
}

// Adds a layer's output to its input and normalises the sum: {dense, LayerNorm}.
class Output final : public torch::nn::Module {
 public:
  Output(const BertConfig& config, std::int64_t in, std::int64_t unit = 1) {
    dense_ = register_module("dense", linear(in, config.width, unit));
    norm_ = register_module("LayerNorm", layer_norm(config.width, config.epsilon));
    dropout_ = register_module("dropout", Dropout(config.dropout));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& input) {
    return norm_(dropout_(dense_->forward(x)) + input);
  }

 private:
  std::shared_ptr<Projection> dense_;
  torch::nn::LayerNorm norm_{nullptr};
  Dropout dropout_{nullptr};
};

class Attention final : public torch::nn::Module {
 public:
  explicit Attention(const BertConfig& config) {
    self_ = register_module("self", std::make_shared<SelfAttention>(SelfAttention::Options{
                                        .width = config.width,
                                        .heads = config.heads,
                                        .deviation = kDeviation,
                                        .dropout = config.attention_dropout,
                                    }));
    output_ = register_module("output", std::make_shared<Output>(config, config.width, config.width / config.heads));
  }

  at::Tensor forward(const at::Tensor& x, const AttentionPattern& pattern) {
    return output_->forward(self_->forward(x, pattern), x);
  }

 private:
  std::shared_ptr<SelfAttention> self_;
  std::shared_ptr<Output> output_;
};

class Layer final : public torch::nn::Module {
 public:
  explicit Layer(const BertConfig& config) {
    attention_ = register_module("attention", std::make_shared<Attention>(config));
    const auto intermediate = register_module("intermediate", std::make_shared<torch::nn::Module>());
    dense_ = intermediate->register_module("dense", linear(config.width, config.hidden_features()));
    output_ = register_module("output", std::make_shared<Output>(config, config.hidden_features()));
  }

  at::Tensor forward(const at::Tensor& input, const AttentionPattern& pattern) {
    const at::Tensor x = attention_->forward(input, pattern);
    return output_->forward(at::gelu(dense_->forward(x)), x);
  }

 private:
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<Projection> dense_;
  std::shared_ptr<Output> output_;
};

std::vector<PublishedSetting> published(const BertConfig& config, std::int64_t context, std::int64_t classes) {
  const auto text = [](const char* value) { return PublishedSetting::Value(std::string(value)); };
  return {{"model_type", {text("bert")}},
          {"vocab_size", {classes}},
          {.key = "max_position_embeddings", .values = {context}, .of_positions = true},
          {"type_vocab_size", {std::int64_t{2}}},
          {"hidden_size", {config.width}, {}, "width"},
          {"intermediate_size", {config.hidden_features()}, {}, "hidden"},
          {"num_hidden_layers", {config.layers}, {}, "layers"},
          {"num_attention_heads", {config.heads}, std::int64_t{12}, "heads"},
          {"hidden_act", {text("gelu"), text("gelu_python")}, text("gelu")},
          {"layer_norm_eps", {config.epsilon}, 1e-12, "epsilon"},
          {"position_embedding_type", {text("absolute"), nullptr}},
          {"is_decoder", {false}, false},
          {"add_cross_attention", {false}, false},
          {"tie_word_embeddings", {true}, true}};
}

// `Base` is RecomputableChain, or Network if all layers must know the padding, which a block cannot pass on.
template <class Base>
class Bert final : public Base, public Published {
 public:
  Bert(const BertConfig& config, std::int64_t context, std::int64_t classes)
      : padding_(config.padding), published_(published(config, context, classes)) {
    const auto body = this->register_module("bert", std::make_shared<torch::nn::Module>());
    const auto embeddings = body->register_module("embeddings", std::make_shared<torch::nn::Module>());
    const auto table = [&](const char* name, std::int64_t rows) {
      return embeddings->register_module(name, std::make_shared<TokenEmbedding>(rows, config.width, kDeviation));
    };
    words_ = table("word_embeddings", classes);
    positions_ = table("position_embeddings", context);
    segments_ = table("token_type_embeddings", 2);
    norm_ = embeddings->register_module("LayerNorm", layer_norm(config.width, config.epsilon));
    dropout_ = embeddings->register_module("dropout", Dropout(config.dropout));
    const auto layers = body->register_module("encoder", std::make_shared<torch::nn::Module>())
                            ->register_module("layer", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers_.push_back(layers->register_module(std::to_string(i), std::make_shared<Layer>(config)));
    }
    const auto head = this->register_module("cls", std::make_shared<torch::nn::Module>())
                          ->register_module("predictions", std::make_shared<torch::nn::Module>());
    head_bias_ = head->register_parameter("bias", at::zeros({classes}));
    const auto transform = head->register_module("transform", std::make_shared<torch::nn::Module>());
    head_dense_ = transform->register_module("dense", linear(config.width, config.width));
    head_norm_ = transform->register_module("LayerNorm", layer_norm(config.width, config.epsilon));
    if constexpr (kChain) add_blocks();
  }

  const std::vector<PublishedSetting>& published_settings() const override { return published_; }

  TensorPlan tensor_plan() const override {
    auto plan = plan_of_encoder("bert.encoder.layer.", std::ssize(layers_), "attention.self");
    plan["bert.embeddings.word_embeddings"] = "vocabulary";
    return plan;
  }

  at::Tensor forward(at::Tensor tokens) override {
    if constexpr (kChain) return Base::forward(std::move(tokens));
    const AttentionPattern pattern{.keys = tokens.ne(padding_)};
    at::Tensor x = embedded(tokens);
    for (const auto& layer : layers_) x = layer->forward(x, pattern);
    return scores(x);
  }

 private:
  static constexpr bool kChain = std::derived_from<Base, ChainNetwork>;

  void add_blocks() {
    this->add_block("embedding", {"bert.embeddings"}, [this](const at::Tensor& tokens) { return embedded(tokens); });
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto name = "bert.encoder.layer." + std::to_string(i);
      this->add_block(name, {name}, [layer = layers_[i].get()](const at::Tensor& x) { return layer->forward(x, {}); });
    }
    this->add_block("head", {"cls", "bert.embeddings.word_embeddings"},
                    [this](const at::Tensor& x) { return scores(x); });
  }

  at::Tensor embedded(const at::Tensor& tokens) {
    const auto length = tokens.size(1), context = positions_->weight.size(0);
    TORCH_CHECK(length <= context, "bert has positions for ", context, " tokens, but got ", length);
    const at::Tensor places = positions_->weight.narrow(0, 0, length) + segments_->weight[0];
    return dropout_(norm_(words_->forward(tokens) + places));
  }

  at::Tensor scores(const at::Tensor& x) {
    return words_->logits(head_norm_(at::gelu(head_dense_->forward(x)))) + head_bias_;
  }

  std::int64_t padding_;
  std::vector<PublishedSetting> published_;
  std::shared_ptr<TokenEmbedding> words_, positions_, segments_;
  torch::nn::LayerNorm norm_{nullptr}, head_norm_{nullptr};
  Dropout dropout_{nullptr};
  std::vector<std::shared_ptr<Layer>> layers_;
  at::Tensor head_bias_;
  std::shared_ptr<Projection> head_dense_;
};

std::shared_ptr<Model> make_bert(const BertConfig& config, const ModelSpec& spec) {
  const auto [context, classes] = next_token("bert", spec);
  refuse_uneven_heads("bert", config.width, config.heads);
  if (config.padding >= classes) {
    throw ConfigError("model bert: padding: " + std::to_string(config.padding) + " is not one of the " +
                      std::to_string(classes) + " tokens");
  }
  if (config.padding < 0) return std::make_shared<Bert<RecomputableChain>>(config, context, classes);
  return std::make_shared<Bert<Network>>(config, context, classes);
}

ModelTraits traits_of_bert(const BertConfig& config) {
  return config.padding < 0 ? ModelTraits::of<Bert<RecomputableChain>>() : ModelTraits::of<Bert<Network>>();
}

const bool bert_registered = Models::global().add<BertConfig>(
    "bert", "bidirectional transformer that predicts masked tokens", traits_of_bert, make_bert);

}  // namespace
}  // namespace phalanx
