// SPDX-License-Identifier: Apache-2.0
// A deep autoencoder (Hinton and Salakhutdinov 2006, Reducing the Dimensionality of Data with Neural Networks), trained
// end to end, with ReLU, for the task reconstruction. Input [n, ...] float, output of the same shape. The encoder has
// layers of the widths `hidden`, the last of which is the code; the decoder reverses them. Parameters encoder.N and
// decoder.N.
#include <ATen/ops/relu.h>

#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "models/chain_network.h"
#include "models/linear.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

struct AutoencoderConfig {
  std::vector<std::int64_t> hidden{512, 128, 32};

  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "widths of the encoder's layers; the decoder has them in reverse", config::at_least(1));
  }
};

std::shared_ptr<Sequence> layers_of(const std::vector<std::int64_t>& widths) {
  auto layers = std::make_shared<Sequence>();
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) layers->add_function([](const at::Tensor& x) { return at::relu(x); });
    layers->add(Linear(widths[i], widths[i + 1]));
  }
  return layers;
}

class Autoencoder final : public RecomputableChain {
 public:
  Autoencoder(const AutoencoderConfig& config, const TensorSpec& input) : shape_(input.shape) {
    std::vector<std::int64_t> widths{1};
    for (const auto length : shape_) widths[0] *= length;
    widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
    const std::vector<std::int64_t> reversed(widths.rbegin(), widths.rend());
    encoder_ = register_module("encoder", layers_of(widths));
    decoder_ = register_module("decoder", layers_of(reversed));
    decoder_->add_function([this](const at::Tensor& x) {
      auto sizes = shape_;
      sizes.insert(sizes.begin(), x.size(0));
      return x.view(sizes);
    });
    add_block("flatten", {}, [](const at::Tensor& x) { return x.flatten(1); });
    add_blocks("encoder", *encoder_);
    add_blocks("decoder", *decoder_);
  }

 private:
  std::vector<std::int64_t> shape_;
  std::shared_ptr<Sequence> encoder_, decoder_;
};

std::shared_ptr<Autoencoder> make_autoencoder(const AutoencoderConfig& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("autoencoder", spec);
  if (input.dtype != at::kFloat) refuse_sample("autoencoder", "numbers", input);
  if (output.shape != input.shape) {
    throw ConfigError(
        "model autoencoder reconstructs its inputs, as the task reconstruction needs it; this task needs something "
        "else");
  }
  if (config.hidden.empty())
    throw ConfigError("model autoencoder: hidden is empty; name at least the width of the code");
  return std::make_shared<Autoencoder>(config, input);
}

const bool autoencoder_registered = Models::global().add<AutoencoderConfig>(
    "autoencoder", "deep autoencoder, for the task reconstruction", make_autoencoder);

}  // namespace
}  // namespace phalanx
