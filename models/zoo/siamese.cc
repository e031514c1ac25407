// SPDX-License-Identifier: Apache-2.0
// A Siamese network (Bromley et al. 1993, Signature Verification using a "Siamese" Time Delay Neural Network; with
// convolutions like Hadsell, Chopra, LeCun 2006 and Koch, Zemel, Salakhutdinov 2015). It has one encoder for all
// members of a sample, which is a pair or a triplet.
//
//   input [n, members, c, h, w] float, or [n, members, ...] without convolutions -> embeddings [n, members, width]
//
// The encoder has a 3 x 3 convolution with ReLU and max pooling for each element of `channels`, linear layers with ReLU
// of the widths `hidden`, and a linear layer of the width of the embeddings, which the task sets. Embeddings have
// length 1 (FaceNet, Schroff et al. 2015), unless `normalize` is false. Parameters conv<i>.{weight, bias},
// fc<i>.{weight, bias}.
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/chain_network.h"
#include "models/linear.h"
#include "models/refuse_sample.h"

namespace phalanx {
namespace {

struct SiameseConfig {
  std::vector<std::int64_t> channels{16, 32};
  std::vector<std::int64_t> hidden{128};
  bool normalize = true;

  template <class V>
  void visit(V& v) {
    v("channels", channels,
      "channels of each convolution of the encoder, which halves the image; []: no convolutions, for any numbers",
      config::at_least(1));
    v("hidden", hidden, "width of each hidden linear layer of the encoder", config::at_least(1));
    v("normalize", normalize, "scale embeddings to length 1");
  }
};

class Siamese final : public RecomputableChain {
 public:
  // `member` is the shape of one member.
  Siamese(const SiameseConfig& config, std::vector<std::int64_t> member, std::int64_t width)
      : normalize_(config.normalize) {
    for (const auto channels : config.channels) {
      const auto name = "conv" + std::to_string(convolutions_.size() + 1);
      const auto options = torch::nn::Conv2dOptions(member[0], channels, 3).padding(1);
      convolutions_.push_back(register_module(name, torch::nn::Conv2d(options)));
      add_block(name, {name}, [this, i = convolutions_.size() - 1](const at::Tensor& x) { return convolved(i, x); });
      member = {channels, member[1] / 2, member[2] / 2};
    }
    std::int64_t in = 1;
    for (const auto length : member) in *= length;
    auto widths = config.hidden;
    widths.push_back(width);
    for (const auto out : widths) {
      const auto name = "fc" + std::to_string(linears_.size() + 1);
      linears_.push_back(register_module(name, Linear(in, out)));
      add_block(name, {name}, [this, i = linears_.size() - 1](const at::Tensor& x) { return transformed(i, x); });
      in = out;
    }
  }

  // Alternates column and row for the linear layers, so that only every other layer ends with an exchange.
  TensorPlan tensor_plan() const override {
    TensorPlan plan;
    const auto count = linears_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const bool alone = i + 1 == count && i % 2 == 0;
      plan["fc" + std::to_string(i + 1)] = i % 2 == 1 ? "row" : alone ? "column_gathered" : "column";
    }
    return plan;
  }

 private:
  // This function and the next one map [n, members, ...] to [n, members, ...].
  at::Tensor convolved(std::size_t layer, const at::Tensor& x) {
    const at::Tensor y = at::max_pool2d(at::relu(convolutions_[layer](x.flatten(0, 1))), 2);
    return y.unflatten(0, {x.size(0), x.size(1)});
  }

  at::Tensor transformed(std::size_t layer, const at::Tensor& x) {
    const at::Tensor y = linears_[layer](layer == 0 ? x.flatten(2) : x);
    if (layer + 1 < linears_.size()) return at::relu(y);
    return normalize_ ? y / y.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-12) : y;
  }

  bool normalize_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<Linear> linears_;
};

std::shared_ptr<Siamese> make_siamese(const SiameseConfig& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("siamese", spec);
  if (output.shape.size() != 2) {
    throw ConfigError(
        "model siamese gives an embedding of each member of a sample, as the task metric_learning needs of the "
        "datasets pairs and triplets; this task needs something else");
  }
  if (input.dtype != at::kFloat || input.shape.size() < 2 || input.shape[0] != output.shape[0]) {
    refuse_sample("siamese", "pairs or triplets of numbers, as the datasets pairs and triplets make", input);
  }
  const std::vector<std::int64_t> member(input.shape.begin() + 1, input.shape.end());
  if (config.channels.empty()) return std::make_shared<Siamese>(config, member, output.shape[1]);
  const auto least = std::int64_t{1} << std::min<std::size_t>(config.channels.size(), 40);
  if (member.size() != 3 || member[1] < least || member[2] < least) {
    const auto side = std::to_string(least);
    refuse_sample("siamese",
                  "members [channels, height, width] of at least " + side + " x " + side +
                      " pixels, or channels: [] for any numbers",
                  input);
  }
  return std::make_shared<Siamese>(config, member, output.shape[1]);
}

const bool siamese_registered = Models::global().add<SiameseConfig>(
    "siamese", "one encoder for both samples of a pair, or all of a triplet; for metric learning", make_siamese);

}  // namespace
}  // namespace phalanx
