// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2, phi the identity), per parameter, t the number of the update:
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
//   u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
//   p -= lr * |p| / |u| * u
// The ratio of norms is 1 if one of them is 0. As in the authors' code, biases and parameters of normalizations have
// neither the ratio nor weight decay.
#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>
#include <memory>

#include "engine/optim/layerwise.h"
#include "engine/optim/moments_config.h"

namespace phalanx {
namespace {

struct LambConfig : MomentsConfig {
  LambConfig() { eps = 1e-6; }

  double weight_decay = 0.01;
  bool adapt_vectors = false;

  template <class V>
  void visit(V& v) {
    MomentsConfig::visit(v);
    v("weight_decay", weight_decay, "weight decay, added to the update before it is scaled", config::at_least(0));
    v("adapt_vectors", adapt_vectors, "adapt biases and normalization parameters too");
  }
};

class Lamb final : public LayerwiseOptimizer {
 public:
  Lamb(const LambConfig& config, const ParameterGroups& groups)
      : LayerwiseOptimizer("lamb", config.lr, config.weight_decay, groups), config_(config) {
    config.check();
  }

 private:
  std::vector<Kind> kinds() const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }

  void update_parameter(const Parameter& parameter, const Rates& rates) const override {
    const auto& [name, values, gradients, state, own] = parameter;
    state[0].mul_(config_.beta1).add_(gradients, 1 - config_.beta1);
    state[1].mul_(config_.beta2).addcmul_(gradients, gradients, 1 - config_.beta2);
    const auto t = static_cast<double>(rates.update);
    const double mean_bias = 1 - std::pow(config_.beta1, t), root_bias = std::sqrt(1 - std::pow(config_.beta2, t));
    at::Tensor step = state[1].sqrt().div_(root_bias).add_(config_.eps).reciprocal_().mul_(state[0]).div_(mean_bias);
    if (parameter.vector() && !config_.adapt_vectors) {
      values.add_(step, -rates.learning_rate);
      return;
    }
    if (rates.weight_decay != 0) step.add_(values, rates.weight_decay);
    const auto size = at::linalg_vector_norm(values).item<double>(),
               length = at::linalg_vector_norm(step).item<double>();
    values.add_(step, -rates.learning_rate * (size > 0 && length > 0 ? size / length : 1));
  }

  LambConfig config_;
};

const bool lamb_registered = Optimizers::global().add<LambConfig>(
    "lamb", "adam with layer-wise adaptive rates, for large batches",
    [](const LambConfig& config, const ParameterGroups& groups) { return std::make_unique<Lamb>(config, groups); });

}  // namespace
}  // namespace phalanx
