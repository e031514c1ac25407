// SPDX-License-Identifier: Apache-2.0
// The causal transformer of Touvron et al. 2023 (LLaMA: Open and Efficient Foundation Language Models,
// arXiv:2302.13971). Input [n, t] int64 tokens, t <= context; output logits [n, t, classes] of the token that follows
// each. It has root-mean-square norms (Zhang and Sennrich 2019, arXiv:1910.07467) before each part of a layer, rotary
// positions (Su et al. 2021, RoFormer, arXiv:2104.09864), gated feed-forward layers (Shazeer 2020, SwiGLU,
// arXiv:2002.05202), and attention in which several queries may share keys and values (Ainslie et al. 2023, GQA,
// arXiv:2305.13245). No layer has a bias.
//
// Parameters have the names and layouts of Hugging Face's LlamaForCausalLM. With `tied`, lm_head.weight is not listed,
// because it is model.embed_tokens.weight. Initial values: normal with standard deviation 0.02; norms 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"
#include "framework/partition/sequence_shard.h"
#include "models/causal_attention.h"
#include "models/chain_network.h"
#include "models/constant.h"
#include "models/context_parallel.h"
#include "models/incremental_decoding.h"
#include "models/projection.h"
#include "models/published_settings.h"
#include "models/refuse_sample.h"
#include "models/rotary_frequencies.h"
#include "models/sequence_parallel.h"
#include "models/token_embedding.h"

namespace phalanx {
namespace {

constexpr double kDeviation = 0.02;

struct LlamaConfig {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t key_value_heads = 0;
  std::int64_t width = 128;
  std::int64_t hidden = 0;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  double epsilon = 1e-5;
  bool tied = false;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "number of transformer blocks", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(1));
    v("key_value_heads", key_value_heads, "heads of keys and values, each for several queries; 0: as many as heads",
      config::at_least(0));
    v("width", width, "embedding size", config::at_least(1));
    v("hidden", hidden, "features of the feed-forward layers; 0: 8 / 3 of width, rounded up to a multiple of 32",
      config::at_least(0));
    v("rope_theta", rope_theta, "base of the wavelengths of rotary positions", config::at_least(1));
    v("rope_scaling", rope_scaling, "how rotary positions are stretched for longer sequences, as in Llama 3.1");
    v("epsilon", epsilon, "added to the mean square in norms", config::above(0));
    v("tied", tied, "use the table of embeddings as head");
  }

  std::int64_t head_width() const { return width / heads; }

  // Returns the config with defaults in place of zeros.
  LlamaConfig complete() const {
    constexpr std::int64_t kMultiple = 32;
    LlamaConfig all = *this;
    if (key_value_heads == 0) all.key_value_heads = heads;
    if (hidden == 0) all.hidden = (8 * width / 3 + kMultiple - 1) / kMultiple * kMultiple;
    return all;
  }
};

// A root-mean-square norm. If positions are sharded among ranks, the gradient of the weight is summed over all of them.
class RmsNorm final : public torch::nn::Module {
 public:
  RmsNorm(std::int64_t width, double epsilon) : epsilon_(epsilon) {
    weight_ = register_parameter("weight", at::ones({width}));
  }

  at::Tensor forward(const at::Tensor& x) const {
    return at::rms_norm(x, {x.size(-1)}, group_ ? copy_to_ranks(weight_, group_) : weight_, epsilon_);
  }

  void enable_sequence_parallel(const CommunicatorPtr& group) { group_ = group; }

 private:
  double epsilon_;
  at::Tensor weight_;
  CommunicatorPtr group_;  // null: this rank has all positions
};

// Rotates pairs of features (i, i + width / 2) of a head by angles that grow with the position. Angles are float32, as
// in Hugging Face's library.
class RotaryPositions {
 public:
  RotaryPositions(const LlamaConfig& config, std::int64_t context) {
    const auto frequencies = rotary_frequencies(config.rope_scaling, config.rope_theta, config.head_width());
    const at::Tensor angles = at::outer(at::arange(context, at::kFloat), frequencies.angles);
    const at::Tensor both = at::cat({angles, angles}, 1);
    cosines_ = Constant(both.cos() * frequencies.scale);
    sines_ = Constant(both.sin() * frequencies.scale);
  }

  std::int64_t context() const { return cosines_.size(0); }

  // Returns cosines and sines for sequences from position `begin` on, or, if there is a `group`, for this rank's
  // positions.
  std::pair<at::Tensor, at::Tensor> of(std::int64_t begin, std::int64_t length, const CommunicatorPtr& group,
                                       const at::Tensor& like) {
    const auto take = [&](Constant& table) {
      at::Tensor rows = table.on(like.device()).narrow(0, begin, length).to(like.scalar_type());
      return group ? shard_sequence(rows, 0, *group) : rows;
    };
    return {take(cosines_), take(sines_)};
  }

  // Rotates x [n, heads, t, head width] by tables [t, head width].
  static at::Tensor turn(const at::Tensor& x, const std::pair<at::Tensor, at::Tensor>& tables) {
    const auto halves = x.chunk(2, -1);
    return x * tables.first + at::cat({-halves[1], halves[0]}, -1) * tables.second;
  }

 private:
  Constant cosines_{at::Tensor()}, sines_{at::Tensor()};  // [context, head width]
};

// The attention of the heads on this rank.
class Attention final : public torch::nn::Module {
 public:
  Attention(const LlamaConfig& config, std::size_t layer, std::shared_ptr<RotaryPositions> positions)
      : head_width_(config.head_width()), positions_(std::move(positions)), attention_(/*fused=*/true, layer) {
    const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(
          name, std::make_shared<Projection>(Projection::Options{
                    .in = in, .out = out, .deviation = kDeviation, .bias = false, .grain = {1, head_width_}}));
    };
    const auto shared = config.key_value_heads * head_width_;
    inputs_ = {add("q_proj", config.width, config.width), add("k_proj", config.width, shared),
               add("v_proj", config.width, shared)};
    o_proj_ = add("o_proj", config.width, config.width);
  }

  CausalAttention& attention() { return attention_; }

  void enable_context_parallel(const CommunicatorPtr& group) {
    context_ = group;
    attention_.enable_context_parallel(group);
  }

  void enable_sequence_parallel(bool overlap) {
    for (const auto& layer : inputs_) layer->enable_sequence_parallel(overlap);
    o_proj_->enable_sequence_parallel(overlap);
  }

  at::Tensor forward(const at::Tensor& x) {
    const auto projected = Projection::forward_all(inputs_, x);
    const auto rows = projected[0].size(0), length = projected[0].size(1);
    const auto by_head = [&](const at::Tensor& part) {
      return part.reshape({rows, length, -1, head_width_}).transpose(1, 2);
    };
    const auto begin = attention_.first_position(), all = length * (context_ ? context_->size() : 1);
    TORCH_CHECK(begin + all <= positions_->context(), "llama has positions for ", positions_->context(),
                " tokens, but got ", begin + all);
    const auto tables = positions_->of(begin, all, context_, projected[0]);
    const at::Tensor seen =
        attention_.forward(RotaryPositions::turn(by_head(projected[0]), tables),
                           RotaryPositions::turn(by_head(projected[1]), tables), by_head(projected[2]));
    return o_proj_->forward(seen.transpose(1, 2).reshape({rows, length, -1}));
  }

 private:
  std::int64_t head_width_;
  std::shared_ptr<RotaryPositions> positions_;
  CausalAttention attention_;
  CommunicatorPtr context_;                          // null: this rank has all positions
  std::vector<std::shared_ptr<Projection>> inputs_;  // to queries, keys and values
  std::shared_ptr<Projection> o_proj_;
};

class Feedforward final : public torch::nn::Module {
 public:
  explicit Feedforward(const LlamaConfig& config) {
    const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(name, std::make_shared<Projection>(Projection::Options{
                                       .in = in, .out = out, .deviation = kDeviation, .bias = false}));
    };
    inputs_ = {add("gate_proj", config.width, config.hidden), add("up_proj", config.width, config.hidden)};
    down_proj_ = add("down_proj", config.hidden, config.width);
  }

  at::Tensor forward(const at::Tensor& x) {
    const auto both = Projection::forward_all(inputs_, x);
    return down_proj_->forward(at::silu(both[0]) * both[1]);
  }

  void enable_sequence_parallel(bool overlap) {
    for (const auto& layer : inputs_) layer->enable_sequence_parallel(overlap);
    down_proj_->enable_sequence_parallel(overlap);
  }

 private:
  std::vector<std::shared_ptr<Projection>> inputs_;  // the gate and the gated projection
  std::shared_ptr<Projection> down_proj_;
};

class Layer final : public torch::nn::Module {
 public:
  Layer(const LlamaConfig& config, std::size_t index, std::shared_ptr<RotaryPositions> positions) {
    attention_ = register_module("self_attn", std::make_shared<Attention>(config, index, std::move(positions)));
    mlp_ = register_module("mlp", std::make_shared<Feedforward>(config));
    before_attention_ = register_module("input_layernorm", std::make_shared<RmsNorm>(config.width, config.epsilon));
    before_mlp_ = register_module("post_attention_layernorm", std::make_shared<RmsNorm>(config.width, config.epsilon));
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x = input + attention_->forward(before_attention_->forward(input));
    return x + mlp_->forward(before_mlp_->forward(x));
  }

  void enable_sequence_parallel(const CommunicatorPtr& group, bool overlap) {
    before_attention_->enable_sequence_parallel(group);
    attention_->enable_sequence_parallel(overlap);
    before_mlp_->enable_sequence_parallel(group);
    mlp_->enable_sequence_parallel(overlap);
  }

  Attention& attention() { return *attention_; }

 private:
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<Feedforward> mlp_;
  std::shared_ptr<RmsNorm> before_attention_, before_mlp_;
};

// Mistral computes the same, as long as sequences fit in its window.
std::vector<PublishedSetting> published(const LlamaConfig& config, std::int64_t context, std::int64_t classes) {
  const auto& scaling = config.rope_scaling;
  const auto text = [](const char* value) { return PublishedSetting::Value(std::string(value)); };
  std::vector<PublishedSetting> all{{"model_type", {text("llama"), text("mistral")}},
                                    {"vocab_size", {classes}},
                                    {"hidden_size", {config.width}, {}, "width"},
                                    {"intermediate_size", {config.hidden}, {}, "hidden"},
                                    {"num_hidden_layers", {config.layers}, {}, "layers"},
                                    {"num_attention_heads", {config.heads}, {}, "heads"},
                                    {"num_key_value_heads", {config.key_value_heads, nullptr}, {}, "key_value_heads"},
                                    {"head_dim", {config.head_width(), nullptr}},
                                    {"hidden_act", {text("silu"), text("swish")}},
                                    {"rms_norm_eps", {config.epsilon}, 1e-6, "epsilon"},
                                    {"rope_theta", {config.rope_theta}, 10000.0, "rope_theta"},
                                    {"partial_rotary_factor", {1.0, nullptr}},
                                    {"tie_word_embeddings", {config.tied}, false, "tied"},
                                    {"attention_bias", {false}, false},
                                    {"mlp_bias", {false}, false},
                                    {"max_position_embeddings", {context}, {}, "", /*or_more=*/true},
                                    {"sliding_window", {context, nullptr}, {}, "", /*or_more=*/true}};
  const auto add = [&](const char* key, std::vector<PublishedSetting::Value> values, PublishedSetting::Value absent) {
    all.push_back({std::string("rope_scaling.") + key, std::move(values), std::move(absent), "rope_scaling"});
  };
  add("rope_type", {scaling.rope_type}, text("default"));
  if (scaling.rope_type == "default") return all;
  add("factor", {scaling.factor}, 1.0);
  if (scaling.rope_type == "linear") return all;
  add("original_max_position_embeddings", {scaling.original_max_position_embeddings}, nullptr);
  if (scaling.rope_type == "llama3") {
    add("low_freq_factor", {scaling.low_freq_factor}, nullptr);
    add("high_freq_factor", {scaling.high_freq_factor}, nullptr);
    return all;
  }
  add("beta_fast", {scaling.beta_fast}, 32.0);
  add("beta_slow", {scaling.beta_slow}, 1.0);
  add("truncate", {true}, true);
  const bool own = scaling.attention_factor > 0;
  add("attention_factor", {own ? PublishedSetting::Value(scaling.attention_factor) : nullptr}, nullptr);
  return all;
}

class Llama final : public RecomputableChain,
                    public SequenceParallel,
                    public ContextParallel,
                    public IncrementalDecoding,
                    public Published {
 public:
  Llama(const LlamaConfig& config, std::int64_t context, std::int64_t classes)
      : published_(published(config, context, classes)) {
    const auto positions = std::make_shared<RotaryPositions>(config, context);
    const auto body = register_module("model", std::make_shared<torch::nn::Module>());
    embed_tokens_ =
        body->register_module("embed_tokens", std::make_shared<TokenEmbedding>(classes, config.width, kDeviation));
    const auto layers = body->register_module("layers", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      layers_.push_back(layers->register_module(std::to_string(i), std::make_shared<Layer>(config, i, positions)));
    }
    norm_ = body->register_module("norm", std::make_shared<RmsNorm>(config.width, config.epsilon));
    head_ = config.tied
                ? embed_tokens_
                : register_module("lm_head", std::make_shared<TokenEmbedding>(classes, config.width, kDeviation));
    add_block("embedding", {"model.embed_tokens"}, [this](const at::Tensor& x) { return embed_tokens_->forward(x); });
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto name = "model.layers." + std::to_string(i);
      add_block(name, {name}, [layer = layers_[i].get()](const at::Tensor& x) { return layer->forward(x); });
    }
    add_block("head", {"model.norm", config.tied ? "model.embed_tokens" : "lm_head"},
              [this](const at::Tensor& x) { return head_->logits(norm_->forward(x)); });
  }

  const std::vector<PublishedSetting>& published_settings() const override { return published_; }

  TensorPlan tensor_plan() const override {
    TensorPlan plan{{"model.embed_tokens", "vocabulary"}};
    if (head_ != embed_tokens_) plan["lm_head"] = "vocabulary";
    for (const char* layer :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"}) {
      plan[std::string("model.layers.*.") + layer] = "column";
    }
    for (const char* layer : {"self_attn.o_proj", "mlp.down_proj"})
      plan[std::string("model.layers.*.") + layer] = "row";
    return plan;
  }

  void enable_sequence_parallel(const CommunicatorPtr& group, bool overlap) override {
    embed_tokens_->enable_sequence_parallel();
    if (head_ != embed_tokens_) head_->enable_sequence_parallel();
    for (const auto& layer : layers_) layer->enable_sequence_parallel(group, overlap);
    norm_->enable_sequence_parallel(group);
  }

  VocabularyShardPtr keep_logits_sharded() override { return head_->keep_logits_sharded(); }

  void use_kv_cache(KeyValueCache* cache) override {
    for (const auto& layer : layers_) layer->attention().attention().use_kv_cache(cache);
  }

  void enable_context_parallel(const CommunicatorPtr& group) override {
    for (const auto& layer : layers_) layer->attention().enable_context_parallel(group);
  }

 private:
  std::vector<PublishedSetting> published_;
  std::shared_ptr<TokenEmbedding> embed_tokens_, head_;  // may be the same module
  std::vector<std::shared_ptr<Layer>> layers_;
  std::shared_ptr<RmsNorm> norm_;
};

std::shared_ptr<Llama> make_llama(const LlamaConfig& given, const ModelSpec& spec) {
  const auto config = given.complete();
  const auto [context, classes] = next_token("llama", spec);
  refuse_uneven_heads("llama", config.width, config.heads);
  if (config.heads % config.key_value_heads != 0) {
    throw ConfigError("model llama: " + std::to_string(config.heads) + " heads cannot share key_value_heads: " +
                      std::to_string(config.key_value_heads) + " equally: use a divisor");
  }
  if (config.head_width() % 2 != 0) {
    throw ConfigError("model llama: heads of " + std::to_string(config.head_width()) +
                      " features cannot be turned in pairs: use a width with an even number of features for each head");
  }
  try {
    rotary_frequencies(config.rope_scaling, config.rope_theta, config.head_width());
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("model llama: ") + error.what());
  }
  return std::make_shared<Llama>(config, context, classes);
}

const bool llama_registered =
    Models::global().add<LlamaConfig>("llama", "transformer language model in the style of Llama", make_llama);

}  // namespace
}  // namespace phalanx
