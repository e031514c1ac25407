// SPDX-License-Identifier: Apache-2.0
// LARS (You, Gitman and Ginsburg 2017, arXiv:1708.03888, algorithm 1), per parameter:
//   r = trust * |p| / (|g| + weight_decay * |p| + eps)
//   v = momentum * v + lr * r * (g + weight_decay * p)
//   p -= v
// r is 1 if |p| or |g| is 0. Biases and parameters of normalizations have r = 1 and no weight decay, as in the
// implementations of MLPerf.
#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <memory>

#include "engine/optim/layerwise.h"

namespace phalanx {
namespace {

struct LarsConfig {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0005;
  double trust = 0.001;
  double eps = 0;
  bool adapt_vectors = false;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("momentum", momentum, "momentum factor", config::between(0, 1));
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
    v("trust", trust, "trust coefficient: size of an update relative to the parameter's norm", config::above(0));
    v("eps", eps, "added to the denominator for numerical stability", config::at_least(0));
    v("adapt_vectors", adapt_vectors, "adapt biases and normalization parameters too");
  }
};

class Lars final : public LayerwiseOptimizer {
 public:
  Lars(const LarsConfig& config, const ParameterGroups& groups)
      : LayerwiseOptimizer("lars", config.lr, config.weight_decay, groups), config_(config) {}

 private:
  std::vector<Kind> kinds() const override { return {{"momentum"}}; }

  void update_parameter(const Parameter& parameter, const Rates& rates) const override {
    const auto& [name, values, gradients, state, own] = parameter;
    double rate = rates.learning_rate;
    if (!parameter.vector() || config_.adapt_vectors) {
      rate *= ratio(values, gradients, rates.weight_decay);
      if (rates.weight_decay != 0) gradients.add_(values, rates.weight_decay);
    }
    state[0].mul_(config_.momentum).add_(gradients, rate);
    values.sub_(state[0]);
  }

  double ratio(const at::Tensor& values, const at::Tensor& gradients, double weight_decay) const {
    const auto size = at::linalg_vector_norm(values).item<double>();
    const auto slope = at::linalg_vector_norm(gradients).item<double>();
    return size > 0 && slope > 0 ? config_.trust * size / (slope + weight_decay * size + config_.eps) : 1;
  }

  LarsConfig config_;
};

const bool lars_registered = Optimizers::global().add<LarsConfig>(
    "lars", "momentum SGD with layer-wise adaptive rates, for large batches",
    [](const LarsConfig& config, const ParameterGroups& groups) { return std::make_unique<Lars>(config, groups); });

}  // namespace
}  // namespace phalanx
