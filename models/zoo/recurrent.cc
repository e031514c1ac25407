// SPDX-License-Identifier: Apache-2.0
// Recurrent language models: lstm (Hochreiter & Schmidhuber 1997; Zaremba et al. 2014, Recurrent Neural Network
// Regularization, arXiv:1409.2329, for the dropout between layers) and gru (Cho et al. 2014, arXiv:1406.1078). Input
// [n, t] int64 tokens, any t; output logits [n, t, classes] of the token that follows each. The initial state of each
// sample is 0.
//
// Parameters are as in PyTorch's word_language_model: encoder.weight, rnn.{weight_ih, weight_hh, bias_ih, bias_hh}_lN
// in the layout of torch.nn.LSTM and GRU, decoder.{weight, bias}. With `tied`, decoder.weight is not listed, because it
// is encoder.weight. Initial values are the same as in that example: uniform within 0.1 in tables and within 1 /
// sqrt(width) in layers, decoder.bias 0.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/parallel/autocast.h"
#include "models/chain_network.h"
#include "models/dropout.h"
#include "models/refuse_sample.h"
#include "models/token_embedding.h"

namespace phalanx {
namespace {

struct RecurrentConfig {
  std::int64_t layers = 2;
  std::int64_t width = 256;
  double dropout = 0;
  bool tied = false;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "number of recurrent layers", config::at_least(1));
    v("width", width, "size of the embeddings and of each layer's state", config::at_least(1));
    v("dropout", dropout, "dropout rate before, between and after the layers", config::between(0, 0.99));
    v("tied", tied, "use the table of embeddings as decoder");
  }
};

enum class Cell { kLstm, kGru };

class Recurrent final : public RecomputableChain {
 public:
  Recurrent(Cell cell, const RecurrentConfig& config, std::int64_t classes) : cell_(cell), width_(config.width) {
    encoder_ = register_module("encoder", std::make_shared<TokenEmbedding>(classes, width_, /*deviation=*/0));
    const auto rnn = register_module("rnn", std::make_shared<torch::nn::Module>());
    const std::int64_t rows = (cell == Cell::kLstm ? 4 : 3) * width_;
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    for (std::int64_t i = 0; i < config.layers; ++i) {
      auto& parameters = layers_.emplace_back();
      for (const char* name : {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"}) {
        std::vector<std::int64_t> shape{rows};
        if (std::string(name).starts_with("weight")) shape.push_back(width_);
        parameters.push_back(
            rnn->register_parameter(name + std::to_string(i), at::empty(shape).uniform_(-bound, bound)));
      }
    }
    for (std::int64_t i = 0; i <= config.layers; ++i) {
      dropouts_.push_back(register_module("dropout" + std::to_string(i), Dropout(config.dropout)));
    }
    const auto decoder = register_module("decoder", std::make_shared<torch::nn::Module>());
    if (!config.tied) decoder_weight_ = decoder->register_parameter("weight", at::empty({classes, width_}));
    decoder_bias_ = decoder->register_parameter("bias", at::zeros({classes}));
    const at::NoGradGuard no_grad;
    encoder_->weight.uniform_(-0.1, 0.1);
    if (!config.tied) decoder_weight_.uniform_(-0.1, 0.1);
    add_blocks(config.tied);
  }

 private:
  void add_blocks(bool tied) {
    add_block("embedding", {"encoder"},
              [this](const at::Tensor& tokens) { return dropouts_[0](encoder_->forward(tokens)); });
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto number = std::to_string(i);
      add_block(
          "rnn." + number,
          {"rnn.weight_ih_l" + number, "rnn.weight_hh_l" + number, "rnn.bias_ih_l" + number, "rnn.bias_hh_l" + number},
          [this, i](const at::Tensor& x) { return dropouts_[i + 1](layer(i, x)); });
    }
    add_block("head", {"decoder", tied ? "encoder" : "decoder"}, [this](const at::Tensor& x) {
      return apply_linear(x, decoder_weight_.defined() ? decoder_weight_ : encoder_->weight, decoder_bias_);
    });
  }

  // Maps x [n, t, width] to the same shape.
  at::Tensor layer(std::size_t i, const at::Tensor& x) const {
    const at::Tensor state = at::zeros({1, x.size(0), width_}, x.options());
    const auto run = [&](const auto& function, const auto& begin) {
      return std::get<0>(function(x, begin, layers_[i], /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0,
                                  is_training(), /*bidirectional=*/false, /*batch_first=*/true));
    };
    if (cell_ == Cell::kGru) return run([](auto&&... a) { return at::gru(a...); }, state);
    try {
      return run([](auto&&... a) { return at::lstm(a...); }, std::vector<at::Tensor>{state, state});
    } catch (const std::exception&) {
      refuse_precision(x);
      throw;
    }
  }

  // On the CPU, LibTorch computes an LSTM with oneDNN, which throws if the processor has no instructions for a 16-bit
  // format: bfloat16 needs AVX-512, and almost no processor supports half precision.
  static void refuse_precision(const at::Tensor& x) {
    const auto dtype = x.is_cpu() ? Autocast::current(at::kCPU) : at::kFloat;
    if (dtype != at::kHalf && dtype != at::kBFloat16) return;
    throw ConfigError(std::string("train.precision: ") + (dtype == at::kHalf ? "fp16" : "bf16") +
                      " cannot be combined with model lstm on this processor; use fp32");
  }

  Cell cell_;
  std::int64_t width_;
  std::shared_ptr<TokenEmbedding> encoder_;
  std::vector<std::vector<at::Tensor>> layers_;  // {weight_ih, weight_hh, bias_ih, bias_hh} of each layer
  std::vector<Dropout> dropouts_;                // before the first layer and after each layer
  at::Tensor decoder_weight_, decoder_bias_;     // the weight is undefined if it is the encoder's
};

bool add(const std::string& name, const std::string& help, Cell cell) {
  return Models::global().add<RecurrentConfig>(
      name, help, [name, cell](const RecurrentConfig& config, const ModelSpec& spec) {
        return std::make_shared<Recurrent>(cell, config, next_token(name, spec).classes);
      });
}

const bool recurrent_registered = add("lstm", "recurrent language model with long short-term memory", Cell::kLstm) &&
                                  add("gru", "recurrent language model with gated recurrent units", Cell::kGru);

}  // namespace
}  // namespace phalanx
