// SPDX-License-Identifier: Apache-2.0
// A variational autoencoder (Kingma and Welling 2014, Auto-Encoding Variational Bayes, arXiv:1312.6114, appendix C) for
// the task variational. Inputs [n, ...] float and noise [n, k]. Outputs: the reconstructed sample, as logits or
// numbers, and the mean and log variance [n, k] of its code. The decoder gets the code mean + deviation * noise.
// Parameters encoder.N, mean, log_variance and decoder.N, which are linear layers with ReLU between them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/generative.h"
#include "models/linear.h"
#include "models/network.h"
#include "models/refuse_sample.h"
#include "models/sequence.h"

namespace phalanx {
namespace {

struct VaeConfig {
  std::vector<std::int64_t> hidden{400};

  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "widths of the encoder's layers; the decoder has them in reverse", config::at_least(1));
  }
};

std::shared_ptr<Sequence> layers_of(const std::vector<std::int64_t>& widths, bool to_the_end) {
  auto layers = std::make_shared<Sequence>();
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    layers->add(Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size() || to_the_end) layers->add_function([](const at::Tensor& x) { return at::relu(x); });
  }
  return layers;
}

class Vae final : public Network, public Generative {
 public:
  Vae(const VaeConfig& config, const ModelSpec& spec)
      : shape_(spec.inputs[0].shape), logits_(spec.outputs[0].name == "logits") {
    std::int64_t elements = 1;
    for (const auto length : shape_) elements *= length;
    const auto code = spec.inputs[1].shape[0];
    std::vector<std::int64_t> encoder{elements}, decoder{code};
    encoder.insert(encoder.end(), config.hidden.begin(), config.hidden.end());
    decoder.insert(decoder.end(), config.hidden.rbegin(), config.hidden.rend());
    decoder.push_back(elements);
    encoder_ = register_module("encoder", layers_of(encoder, /*to_the_end=*/true));
    mean_ = register_module("mean", Linear(encoder.back(), code));
    log_variance_ = register_module("log_variance", Linear(encoder.back(), code));
    decoder_ = register_module("decoder", layers_of(decoder, /*to_the_end=*/false));
  }

  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor x = encoder_->forward(inputs.at(0).flatten(1));
    const at::Tensor mean = mean_(x), log_variance = log_variance_(x);
    return {decoded(mean + (log_variance / 2).exp() * inputs.at(1)), mean, log_variance};
  }

  at::Tensor samples(const at::Tensor& noise) override {
    const at::Tensor made = decoded(noise);
    return logits_ ? made.sigmoid() : made;
  }

 private:
  at::Tensor decoded(const at::Tensor& code) {
    auto sizes = shape_;
    sizes.insert(sizes.begin(), code.size(0));
    return decoder_->forward(code).view(sizes);
  }

  std::vector<std::int64_t> shape_;
  bool logits_;  // the task takes the sample as logits
  std::shared_ptr<Sequence> encoder_, decoder_;
  Linear mean_{nullptr}, log_variance_{nullptr};
};

std::shared_ptr<Vae> make_vae(const VaeConfig& config, const ModelSpec& spec) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 3 || spec.outputs[0].shape != spec.inputs[0].shape) {
    throw ConfigError(
        "model vae needs the task variational, of samples with noise: task: variational, dataset: {name: with_noise, "
        "of: {name: ...}}");
  }
  if (config.hidden.empty()) throw ConfigError("model vae: hidden is empty; name at least one width");
  return std::make_shared<Vae>(config, spec);
}

const bool vae_registered =
    Models::global().add<VaeConfig>("vae", "variational autoencoder, for the task variational", make_vae);

}  // namespace
}  // namespace phalanx
