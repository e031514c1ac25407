// SPDX-License-Identifier: Apache-2.0
// A causal transformer like GPT-2 (Radford et al. 2019, Language Models are Unsupervised Multitask Learners). Input [n,
// t] int64 tokens, t <= context; output logits [n, t, classes] of the token that follows each.
//
// moe_gpt is the same model with a mixture of experts (models/mixture_of_experts.h) as each feed-forward layer.
//
// Parameters have the names and layouts of Hugging Face's GPT2LMHeadModel. Its lm_head.weight is not listed, because it
// is transformer.wte.weight; weights of linear layers are [in, out]. Initial values are GPT-2's: normal with standard
// deviation 0.02, divided by sqrt(2 layers) in layers that add to the residual stream; biases 0.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/stack.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"
#include "framework/partition/sequence_shard.h"
#include "models/auxiliary_loss.h"
#include "models/causal_attention.h"
#include "models/chain_network.h"
#include "models/context_parallel.h"
#include "models/dropout.h"
#include "models/expert_parallel.h"
#include "models/expert_parallel_layer.h"
#include "models/incremental_decoding.h"
#include "models/mixture_of_experts.h"
#include "models/projection.h"
#include "models/published_settings.h"
#include "models/refuse_sample.h"
#include "models/sequence_parallel.h"
#include "models/token_embedding.h"

namespace phalanx {
namespace {

struct GptConfig {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::string attention = "sdpa";
  double dropout = 0;
  double epsilon = 1e-5;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "number of transformer blocks", config::at_least(1));
    v("heads", heads, "attention heads", config::at_least(1));
    v("width", width, "embedding size", config::at_least(1));
    v("attention", attention, "sdpa: LibTorch's fused kernel; explicit: matrix products and softmax",
      config::one_of({"sdpa", "explicit"}));
    v("dropout", dropout, "dropout rate of the embeddings and of what each layer adds, but not of attention's weights",
      config::between(0, 0.99));
    v("epsilon", epsilon, "added to the variance in norms", config::above(0));
  }
};

struct MoeGptConfig : GptConfig {
  std::int64_t experts = 8;
  std::int64_t top_k = 2;
  double capacity_factor = 0;
  double balance = 0.01;
  std::string count_over = "batch";

  template <class V>
  void visit(V& v) {
    GptConfig::visit(v);
    v("experts", experts, "feed-forward layers in each block, of which each token uses a few", config::at_least(1));
    v("top_k", top_k, "number of experts that each token uses", config::at_least(1));
    v("capacity_factor", capacity_factor,
      "largest number of tokens of an expert, relative to the mean; the rest is dropped. 0: no limit",
      config::at_least(0));
    v("balance", balance, "coefficient of the loss that keeps experts in balance", config::at_least(0));
    v("count_over", count_over,
      "tokens over which balance and capacity_factor count: of the global batch, or of each sequence separately",
      config::one_of({"batch", "sequence"}));
  }

  MixtureOfExperts::Options layer() const;
};

constexpr double kDeviation = 0.02;

double into_residual(const GptConfig& config) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

MixtureOfExperts::Options MoeGptConfig::layer() const {
  return {.width = width,
          .hidden = 4 * width,
          .experts = experts,
          .top_k = top_k,
          .capacity_factor = capacity_factor,
          .balance = balance,
          .count_over =
              count_over == "batch" ? MixtureOfExperts::CountOver::kBatch : MixtureOfExperts::CountOver::kSequence,
          .deviation = kDeviation,
          .deviation_into_sum = into_residual(*this)};
}

Projection::Options projection(std::int64_t in, std::int64_t out, double deviation,
                               TensorParallelLinear::Grain grain = {}) {
  return {.in = in, .out = out, .deviation = deviation, .layout = WeightLayout::kInOut, .grain = grain};
}

// A layer norm whose input positions may be sharded among ranks. The gradients of its parameters are then summed over
// all positions.
class NormImpl final : public torch::nn::LayerNormImpl {
 public:
  explicit NormImpl(const GptConfig& config)
      : LayerNormImpl(torch::nn::LayerNormOptions({config.width}).eps(config.epsilon)) {}

  at::Tensor forward(const at::Tensor& x) {
    if (!group_) return LayerNormImpl::forward(x);
    const at::Tensor both = copy_to_ranks(at::stack({weight, bias}), group_);  // one all_reduce for the two
    return at::layer_norm(x, options.normalized_shape(), both[0], both[1], options.eps());
  }

  void enable_sequence_parallel(const CommunicatorPtr& group) { group_ = group; }

 private:
  CommunicatorPtr group_;  // null: this rank has all positions
};
TORCH_MODULE(Norm);

// The attention of the heads on this rank.
class Attention final : public torch::nn::Module {
 public:
  Attention(const GptConfig& config, std::size_t layer)
      : head_width_(config.width / config.heads), attention_(config.attention == "sdpa", layer) {
    c_attn_ = register_module("c_attn", std::make_shared<Projection>(
                                            projection(config.width, 3 * config.width, kDeviation, {3, head_width_})));
    c_proj_ = register_module("c_proj", std::make_shared<Projection>(projection(
                                            config.width, config.width, into_residual(config), {1, head_width_})));
  }

  CausalAttention& attention() { return attention_; }

  void enable_sequence_parallel(bool overlap) {
    c_attn_->enable_sequence_parallel(overlap);
    c_proj_->enable_sequence_parallel(overlap);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor projected = c_attn_->forward(x);
    const auto rows = projected.size(0), length = projected.size(1);
    const auto width = projected.size(2) / 3;
    const auto parts = projected.split(width, 2);
    const auto by_head = [&](const at::Tensor& part) {  // [n, heads, t, head_width]
      return part.view({rows, length, -1, head_width_}).transpose(1, 2);
    };
    const at::Tensor seen = attention_.forward(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    return c_proj_->forward(seen.transpose(1, 2).reshape({rows, length, width}));
  }

 private:
  std::int64_t head_width_;
  CausalAttention attention_;
  std::shared_ptr<Projection> c_attn_, c_proj_;
};

class Feedforward final : public torch::nn::Module {
 public:
  explicit Feedforward(const GptConfig& config) {
    c_fc_ =
        register_module("c_fc", std::make_shared<Projection>(projection(config.width, 4 * config.width, kDeviation)));
    c_proj_ = register_module(
        "c_proj", std::make_shared<Projection>(projection(4 * config.width, config.width, into_residual(config))));
  }

  at::Tensor forward(const at::Tensor& x) { return c_proj_->forward(at::gelu(c_fc_->forward(x), "tanh")); }

  void enable_sequence_parallel(bool overlap) {
    c_fc_->enable_sequence_parallel(overlap);
    c_proj_->enable_sequence_parallel(overlap);
  }

 private:
  std::shared_ptr<Projection> c_fc_, c_proj_;
};

// `Mlp` is Feedforward or MixtureOfExperts.
template <class Mlp>
class Layer final : public torch::nn::Module {
 public:
  Layer(const GptConfig& config, std::size_t index, std::shared_ptr<Mlp> mlp) {
    ln_1_ = register_module("ln_1", Norm(config));
    attn_ = register_module("attn", std::make_shared<Attention>(config, index));
    ln_2_ = register_module("ln_2", Norm(config));
    mlp_ = register_module("mlp", std::move(mlp));
    attn_dropout_ = register_module("attn_dropout", Dropout(config.dropout));
    mlp_dropout_ = register_module("mlp_dropout", Dropout(config.dropout));
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor x = input + attn_dropout_(attn_->forward(ln_1_(input)));
    return x + mlp_dropout_(mlp_->forward(ln_2_(x)));
  }

  void enable_sequence_parallel(const CommunicatorPtr& group, bool overlap) {
    ln_1_->enable_sequence_parallel(group);
    attn_->enable_sequence_parallel(overlap);
    ln_2_->enable_sequence_parallel(group);
    mlp_->enable_sequence_parallel(overlap);
  }

  void shard_dropouts(std::int64_t parts, const DropoutImpl::TakePositions& take) {
    attn_dropout_->shard_positions(parts, take);
    mlp_dropout_->shard_positions(parts, take);
  }

  CausalAttention& attention() { return attn_->attention(); }
  Mlp& mlp() { return *mlp_; }

 private:
  Norm ln_1_{nullptr}, ln_2_{nullptr};
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<Mlp> mlp_;
  Dropout attn_dropout_{nullptr}, mlp_dropout_{nullptr};
};

template <class Mlp>
class Gpt : public ChainNetwork, public ContextParallel, public IncrementalDecoding {
 public:
  using MakeMlp = std::function<std::shared_ptr<Mlp>()>;

  Gpt(const GptConfig& config, std::int64_t context, std::int64_t classes, const MakeMlp& make_mlp) {
    const auto transformer = register_module("transformer", std::make_shared<torch::nn::Module>());
    wte_ = transformer->register_module("wte", std::make_shared<TokenEmbedding>(classes, config.width, kDeviation));
    wpe_ = transformer->register_module("wpe", std::make_shared<TokenEmbedding>(context, config.width, kDeviation));
    dropout_ = transformer->register_module("drop", Dropout(config.dropout));
    const auto layers = transformer->register_module("h", std::make_shared<torch::nn::Module>());
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      layers_.push_back(
          layers->register_module(std::to_string(layer), std::make_shared<Layer<Mlp>>(config, layer, make_mlp())));
    }
    ln_f_ = transformer->register_module("ln_f", Norm(config));
    add_blocks();
  }

  TensorPlan tensor_plan() const override {
    return {{"transformer.wte", "vocabulary"},
            {"transformer.h.*.attn.c_attn", "column"},
            {"transformer.h.*.attn.c_proj", "row"},
            {"transformer.h.*.mlp.c_fc", "column"},
            {"transformer.h.*.mlp.c_proj", "row"}};
  }

  VocabularyShardPtr keep_logits_sharded() override { return wte_->keep_logits_sharded(); }

  void use_kv_cache(KeyValueCache* cache) override {
    for (const auto& layer : layers_) layer->attention().use_kv_cache(cache);
  }

  void enable_context_parallel(const CommunicatorPtr& group) override {
    for (const auto& layer : layers_) layer->attention().enable_context_parallel(group);
    context_ = group;
    shard_dropouts();
  }

 protected:
  void shard_positions(const CommunicatorPtr& group, bool overlap) {
    wte_->enable_sequence_parallel();
    for (const auto& layer : layers_) layer->enable_sequence_parallel(group, overlap);
    ln_f_->enable_sequence_parallel(group);
    tensor_ = group;
    shard_dropouts();
  }

  const std::vector<std::shared_ptr<Layer<Mlp>>>& layers() const { return layers_; }

 private:
  void add_blocks() {
    add_block("embedding", {"transformer.wte", "transformer.wpe"},
              [this](const at::Tensor& tokens) { return dropout_(wte_->forward(tokens) + positions(tokens.size(1))); });
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto name = "transformer.h." + std::to_string(i);
      add_block(name, {name}, [layer = layers_[i].get()](const at::Tensor& x) { return layer->forward(x); });
    }
    add_block("head", {"transformer.ln_f", "transformer.wte"},
              [this](const at::Tensor& x) { return wte_->logits(ln_f_(x)); });
  }

  // Returns this rank's position embeddings. `length` is the number of input positions on this rank, before the tensor
  // group divides them.
  at::Tensor positions(std::int64_t length) const {
    const auto begin = layers_.front()->attention().first_position();
    const auto all = length * (context_ ? context_->size() : 1), context = wpe_->weight.size(0);
    TORCH_CHECK(begin + all <= context, "gpt has positions for ", context, " tokens, but got ", begin + all);
    return here(wpe_->weight.narrow(0, begin, all), 0);
  }

  // Returns the positions along `dim` whose activations this rank has.
  at::Tensor here(at::Tensor all, std::int64_t dim) const {
    if (context_) all = shard_sequence(all, dim, *context_);
    return tensor_ ? take_part(all, dim, tensor_) : all;
  }

  void shard_dropouts() {
    const std::int64_t parts = (context_ ? context_->size() : 1) * (tensor_ ? tensor_->size() : 1);
    const auto take = [this](const at::Tensor& all) { return here(all, 1); };
    dropout_->shard_positions(parts, take);
    for (const auto& layer : layers_) layer->shard_dropouts(parts, take);
  }

  std::shared_ptr<TokenEmbedding> wte_, wpe_;
  Dropout dropout_{nullptr};
  std::vector<std::shared_ptr<Layer<Mlp>>> layers_;
  CommunicatorPtr context_;  // null: positions are not sharded among ranks of mesh.context
  CommunicatorPtr tensor_;   // sequence parallelism; null: this rank has all positions between its layers
  Norm ln_f_{nullptr};
};

std::vector<PublishedSetting> published(const GptConfig& config, std::int64_t context, std::int64_t classes) {
  const auto text = [](const char* value) { return PublishedSetting::Value(std::string(value)); };
  return {{"model_type", {text("gpt2")}},
          {"vocab_size", {classes}},
          {.key = "n_positions", .values = {context}, .of_positions = true},
          {"n_embd", {config.width}, {}, "width"},
          {"n_inner", {4 * config.width, nullptr}},
          {"n_layer", {config.layers}, {}, "layers"},
          {"n_head", {config.heads}, std::int64_t{12}, "heads"},
          {"activation_function", {text("gelu_new"), text("gelu_pytorch_tanh"), text("gelu_fast")}, text("gelu_new")},
          {"layer_norm_epsilon", {config.epsilon}, 1e-5, "epsilon"},
          {"scale_attn_weights", {true}, true},
          {"scale_attn_by_inverse_layer_idx", {false}, false},
          {"add_cross_attention", {false}, false},
          {"tie_word_embeddings", {true}, true}};
}

class DenseGpt final : public Gpt<Feedforward>,
                       public ActivationCheckpointing,
                       public SequenceParallel,
                       public Published {
 public:
  DenseGpt(const GptConfig& config, std::int64_t context, std::int64_t classes)
      : Gpt(config, context, classes, [&] { return std::make_shared<Feedforward>(config); }),
        published_(published(config, context, classes)) {}

  bool checkpoint_activations(const CheckpointedSegments& segments) override { return recompute_blocks(segments); }

  void enable_sequence_parallel(const CommunicatorPtr& group, bool overlap) override {
    shard_positions(group, overlap);
  }

  const std::vector<PublishedSetting>& published_settings() const override { return published_; }

 private:
  std::vector<PublishedSetting> published_;
};

// Does not recompute blocks, which would route tokens again and communicate with the other ranks, nor divide positions
// between layers, since experts need whole tokens on each rank.
class MoeGpt final : public Gpt<MixtureOfExperts>, public ExpertParallel, public AuxiliaryLoss {
 public:
  MoeGpt(const MoeGptConfig& config, std::int64_t context, std::int64_t classes)
      : Gpt(config, context, classes, [&] { return std::make_shared<MixtureOfExperts>(config.layer()); }) {}

  TensorPlan tensor_plan() const override {
    TensorPlan plan = Gpt::tensor_plan();
    std::erase_if(plan, [](const auto& entry) { return entry.first.find(".mlp.") != std::string::npos; });
    return plan;
  }

  Placements partition_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) override {
    return phalanx::partition_experts(*this, experts, batch);
  }

  std::string counts_over_batch() const override { return phalanx::counts_over_batch(*this); }

  void enable_context_parallel(const CommunicatorPtr& group) override {
    for (const auto& layer : layers()) layer->mlp().enable_context_parallel(group);
    context_ranks_ = group->size();
    Gpt::enable_context_parallel(group);
  }

  at::Tensor take_auxiliary_loss() override {
    at::Tensor sum;
    for (const auto& layer : layers()) {
      const at::Tensor loss = layer->mlp().take_balance_loss();
      if (loss.defined()) sum = sum.defined() ? sum + loss : loss;
    }
    return sum.defined() && context_ranks_ > 1 ? sum / context_ranks_ : sum;
  }

 private:
  std::int64_t context_ranks_ = 1;  // size of mesh.context
};

template <class Made, class Config>
std::shared_ptr<Made> make_gpt(const std::string& name, const Config& config, const ModelSpec& spec) {
  const auto [context, classes] = next_token(name, spec);
  refuse_uneven_heads(name, config.width, config.heads);
  if constexpr (std::is_same_v<Config, MoeGptConfig>) {
    if (config.top_k > config.experts) {
      throw ConfigError("model " + name + ": top_k: " + std::to_string(config.top_k) +
                        " is more than experts: " + std::to_string(config.experts));
    }
  }
  return std::make_shared<Made>(config, context, classes);
}

template <class Made, class Config>
bool add(const char* name, const char* help) {
  return Models::global().add<Config>(
      name, help, [name](const Config& config, const ModelSpec& spec) { return make_gpt<Made>(name, config, spec); });
}

const bool gpt_registered = add<DenseGpt, GptConfig>("gpt", "transformer language model in the style of GPT-2") &&
                            add<DenseGpt, GptConfig>("char_lm", "the older name of gpt") &&
                            add<MoeGpt, MoeGptConfig>("moe_gpt", "gpt with a mixture of experts in each block");

}  // namespace
}  // namespace phalanx
