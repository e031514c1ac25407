// SPDX-License-Identifier: Apache-2.0
// The transformer with an encoder and a decoder (Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762).
// Inputs: source [n, s] int64 and the known part of the target [n, t] int64. Output: logits [n, t, classes] of the
// target's token at each position. A position of the target attends to the whole source, to itself and to earlier
// positions of the target. Norms follow the residual additions; positions are sines of geometric wavelengths (section
// 3.5).
//
// Parameters: embedding.weight, used for both sequences and for the scores (section 3.4), or, without `tied`,
// source_embedding, target_embedding and head.{weight, bias}. transformer.* are torch.nn.Transformer's, with its
// initial values. Embeddings are normal with standard deviation 1 / sqrt(width).
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/constant.h"
#include "models/layer_norm.h"
#include "models/linear.h"
#include "models/multihead_attention.h"
#include "models/network.h"
#include "models/refuse_sample.h"
#include "models/token_embedding.h"

namespace phalanx {
namespace {

struct TransformerConfig {
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t hidden = 0;
  double dropout = 0;
  bool tied = true;
  std::int64_t padding = -1;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "number of blocks of the encoder, and of the decoder", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(1));
    v("width", width, "embedding size, a multiple of heads", config::at_least(1));
    v("hidden", hidden, "features of the feed-forward layers; 0: 4 times width", config::at_least(0));
    v("dropout", dropout, "dropout rate of the embeddings and of what each layer adds", config::between(0, 0.99));
    v("tied", tied, "one table of embeddings for source, target and scores");
    v("padding", padding, "token that pads sources and gets no attention; -1: none", config::at_least(-1));
  }

  std::int64_t hidden_features() const { return hidden > 0 ? hidden : 4 * width; }
};

using torch::nn::LayerNorm;

constexpr double kEpsilon = 1e-5;

std::shared_ptr<MultiheadAttention> attention(const TransformerConfig& config) {
  return std::make_shared<MultiheadAttention>(config.width, config.heads, /*dropout=*/0);
}

// The common parts of layers: linear1, linear2, and norm1 ... normK, each with a dropout.
class Layer : public torch::nn::Module {
 protected:
  void add_feedforward(const TransformerConfig& config, int norms) {
    linear1_ = register_module("linear1", Linear(config.width, config.hidden_features()));
    linear2_ = register_module("linear2", Linear(config.hidden_features(), config.width));
    for (int i = 1; i <= norms; ++i) {
      norms_.push_back(register_module("norm" + std::to_string(i), layer_norm(config.width, kEpsilon)));
      dropouts_.push_back(register_module("dropout" + std::to_string(i), Dropout(config.dropout)));
    }
  }

  at::Tensor add(std::size_t norm, const at::Tensor& x, const at::Tensor& change) {
    return norms_.at(norm)(x + dropouts_.at(norm)(change));
  }

  at::Tensor feedforward(const at::Tensor& x) { return linear2_(at::relu(linear1_(x))); }

 private:
  Linear linear1_{nullptr}, linear2_{nullptr};
  std::vector<LayerNorm> norms_;
  std::vector<Dropout> dropouts_;
};

class EncoderLayer final : public Layer {
 public:
  explicit EncoderLayer(const TransformerConfig& config) {
    self_attention_ = register_module("self_attn", attention(config));
    add_feedforward(config, 2);
  }

  at::Tensor forward(const at::Tensor& source, const AttentionPattern& known) {
    const at::Tensor x = add(0, source, self_attention_->forward(source, known));
    return add(1, x, feedforward(x));
  }

 private:
  std::shared_ptr<MultiheadAttention> self_attention_;
};

class DecoderLayer final : public Layer {
 public:
  explicit DecoderLayer(const TransformerConfig& config) {
    self_attention_ = register_module("self_attn", attention(config));
    source_attention_ = register_module("multihead_attn", attention(config));
    add_feedforward(config, 3);
  }

  at::Tensor forward(const at::Tensor& target, const at::Tensor& source, const AttentionPattern& known) {
    at::Tensor x = add(0, target, self_attention_->forward(target, {.causal = true}));
    x = add(1, x, source_attention_->forward(x, source, known));
    return add(2, x, feedforward(x));
  }

 private:
  std::shared_ptr<MultiheadAttention> self_attention_, source_attention_;
};

// Returns [length, width]: sines in even features, cosines in odd ones.
at::Tensor sinusoids(std::int64_t length, std::int64_t width) {
  const at::Tensor exponents = at::arange(0, width, 2, at::kDouble) / static_cast<double>(width);
  const at::Tensor angles = at::outer(at::arange(length, at::kDouble), at::pow(10000.0, exponents).reciprocal());
  return at::stack({angles.sin(), angles.cos()}, 2).flatten(1).narrow(1, 0, width);
}

struct Sequences {
  std::int64_t source, target;                  // tokens of a sample
  std::int64_t source_classes, target_classes;  // numbers of distinct tokens
};

class Transformer final : public Network {
 public:
  Transformer(const TransformerConfig& config, const Sequences& sizes)
      : width_(config.width),
        padding_(config.padding),
        sinusoids_(sinusoids(std::max(sizes.source, sizes.target), config.width)) {
    const auto table = [&](const char* name, std::int64_t rows) {
      const double deviation = 1 / std::sqrt(static_cast<double>(width_));
      return register_module(name, std::make_shared<TokenEmbedding>(rows, width_, deviation));
    };
    if (config.tied) {
      source_ = target_ = table("embedding", sizes.source_classes);
    } else {
      source_ = table("source_embedding", sizes.source_classes);
      target_ = table("target_embedding", sizes.target_classes);
    }
    const auto body = register_module("transformer", std::make_shared<torch::nn::Module>());
    encoder_ = add_layers<EncoderLayer>(*body, "encoder", config, encoder_norm_);
    decoder_ = add_layers<DecoderLayer>(*body, "decoder", config, decoder_norm_);
    const at::NoGradGuard no_grad;
    for (auto& parameter : body->parameters()) {
      if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
    }
    if (!config.tied) head_ = register_module("head", Linear(width_, sizes.target_classes));
    dropout_ = register_module("dropout", Dropout(config.dropout));
  }

  TensorPlan tensor_plan() const override {
    TensorPlan plan{{"transformer.decoder.layers.*.multihead_attn", "column"},
                    {"transformer.decoder.layers.*.multihead_attn.out_proj", "row"}};
    for (const std::string layer : {"transformer.encoder.layers.*.", "transformer.decoder.layers.*."}) {
      plan.insert({{layer + "self_attn", "column"},
                   {layer + "self_attn.out_proj", "row"},
                   {layer + "linear1", "column"},
                   {layer + "linear2", "row"}});
    }
    if (!head_) plan["embedding"] = "vocabulary";
    return plan;
  }

  Tensors outputs(const Tensors& inputs) override {
    const auto &source = inputs.at(0), &target = inputs.at(1);
    AttentionPattern known;
    if (padding_ >= 0) known.keys = source.ne(padding_);
    at::Tensor memory = embedded(*source_, source);
    for (const auto& layer : encoder_) memory = layer->forward(memory, known);
    memory = encoder_norm_(memory);
    at::Tensor x = embedded(*target_, target);
    for (const auto& layer : decoder_) x = layer->forward(x, memory, known);
    x = decoder_norm_(x);
    return {head_ ? head_(x) : target_->logits(x)};
  }

 private:
  template <class L>
  static std::vector<std::shared_ptr<L>> add_layers(torch::nn::Module& body, const char* name,
                                                    const TransformerConfig& config, LayerNorm& norm) {
    const auto part = body.register_module(name, std::make_shared<torch::nn::Module>());
    const auto list = part->register_module("layers", std::make_shared<torch::nn::Module>());
    std::vector<std::shared_ptr<L>> layers;
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers.push_back(list->register_module(std::to_string(i), std::make_shared<L>(config)));
    }
    norm = part->register_module("norm", layer_norm(config.width, kEpsilon));
    return layers;
  }

  at::Tensor embedded(TokenEmbedding& table, const at::Tensor& tokens) {
    const auto length = tokens.size(1);
    TORCH_CHECK(length <= sinusoids_.size(0), "transformer has positions for ", sinusoids_.size(0), " tokens, but got ",
                length);
    const at::Tensor x = table.forward(tokens) * std::sqrt(static_cast<double>(width_));
    return dropout_(x + sinusoids_.on(x.device()).narrow(0, 0, length).to(x.scalar_type()));
  }

  std::int64_t width_, padding_;
  Constant sinusoids_;
  std::shared_ptr<TokenEmbedding> source_, target_;  // may be the same module, which then also gives the scores
  std::vector<std::shared_ptr<EncoderLayer>> encoder_;
  std::vector<std::shared_ptr<DecoderLayer>> decoder_;
  LayerNorm encoder_norm_{nullptr}, decoder_norm_{nullptr};
  Linear head_{nullptr};
  Dropout dropout_{nullptr};
};

Sequences sequences(const ModelSpec& spec) {
  const auto is_sequence = [](const TensorSpec& tensor) {
    return tensor.shape.size() == 1 && tensor.dtype == at::kLong;
  };
  if (spec.inputs.size() != 2 || !std::ranges::all_of(spec.inputs, is_sequence)) {
    refuse_sample("transformer", "two sequences of indices, a source and a target, as in the dataset \"reversal\"",
                  spec.inputs.front());
  }
  const auto &source = spec.inputs[0], &target = spec.inputs[1];
  if (spec.outputs.size() != 1 || spec.outputs[0].shape != std::vector{target.shape[0], target.classes}) {
    throw ConfigError("model transformer gives a score for each of " + std::to_string(target.classes) +
                      " tokens at each of " + std::to_string(target.shape[0]) +
                      " positions, but the task needs something else");
  }
  return {source.shape[0], target.shape[0], source.classes, target.classes};
}

std::shared_ptr<Transformer> make_transformer(const TransformerConfig& config, const ModelSpec& spec) {
  const auto sizes = sequences(spec);
  const auto refuse = [](const std::string& why) { throw ConfigError("model transformer: " + why); };
  refuse_uneven_heads("transformer", config.width, config.heads);
  if (config.tied && sizes.source_classes != sizes.target_classes) {
    refuse("sources have " + std::to_string(sizes.source_classes) + " tokens and targets " +
           std::to_string(sizes.target_classes) + ", so they cannot share a table: use tied: false");
  }
  if (config.padding >= sizes.source_classes) {
    refuse("padding: " + std::to_string(config.padding) + " is not one of the " + std::to_string(sizes.source_classes) +
           " tokens of the source");
  }
  return std::make_shared<Transformer>(config, sizes);
}

const bool transformer_registered = Models::global().add<TransformerConfig>(
    "transformer", "encoder and decoder, which turn one sequence into another", make_transformer);

}  // namespace
}  // namespace phalanx
