// SPDX-License-Identifier: Apache-2.0
// Lion, evolved sign momentum (Chen et al. 2023, arXiv:2302.06675, algorithm 2):
//   p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)
//   m = beta2 * m + (1 - beta2) * g
#include <ATen/core/Tensor.h>

#include <memory>

#include "engine/optim/elementwise.h"

namespace phalanx {
namespace {

struct LionConfig {
  double lr = 0.0001;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate: distance that every value moves in an update", config::at_least(0));
    v("beta1", beta1, "weight of the momentum in the direction of an update", config::between(0, 1));
    v("beta2", beta2, "decay rate of the momentum", config::between(0, 1));
    v("weight_decay", weight_decay, "decoupled weight decay", config::at_least(0));
  }
};

class Lion final : public ElementwiseOptimizer {
 public:
  Lion(const LionConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {}

 private:
  std::vector<Kind> kinds() const override { return {{"momentum"}}; }

  void update_range(const Range& range, const Rates& rates) const override {
    const auto& momentum = range.state[0];
    const at::Tensor direction = momentum.mul(config_.beta1).add_(range.gradients, 1 - config_.beta1).sign_();
    if (rates.weight_decay != 0) direction.add_(range.values, rates.weight_decay);
    range.values.add_(direction, -rates.learning_rate);
    momentum.mul_(config_.beta2).add_(range.gradients, 1 - config_.beta2);
  }

  LionConfig config_;
};

const bool lion_registered = Optimizers::global().add<LionConfig>(
    "lion", "updates of uniform size, by the sign of the momentum",
    [](const LionConfig& config, const ParameterGroups& groups) { return std::make_unique<Lion>(config, groups); });

}  // namespace
}  // namespace phalanx
