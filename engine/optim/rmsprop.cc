// SPDX-License-Identifier: Apache-2.0
// RMSprop (Tieleman and Hinton 2012, Coursera lecture 6.5), centered as in Graves 2013 (arXiv:1308.0850), as in
// torch.optim.RMSprop:
//   g += weight_decay * p
//   s = alpha * s + (1 - alpha) * g^2;  m = alpha * m + (1 - alpha) * g
//   d = g / (sqrt(centered ? s - m^2 : s) + eps);  b = momentum * b + d
//   p -= lr * (momentum > 0 ? b : d)
#include <ATen/core/Tensor.h>

#include <memory>

#include "engine/optim/elementwise.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct RmspropConfig {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("alpha", alpha, "decay rate of the mean squared gradient, below 1", config::between(0, 1));
    v("eps", eps, "added to the denominator for numerical stability", config::above(0));
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
    v("momentum", momentum, "momentum factor", config::between(0, 1));
    v("centered", centered, "normalize by the estimated variance of the gradient (Graves 2013)");
  }
};

class Rmsprop final : public ElementwiseOptimizer {
 public:
  Rmsprop(const RmspropConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {
    if (config.alpha == 1) throw ConfigError("alpha must be below 1");
  }

 private:
  std::vector<Kind> kinds() const override {
    std::vector<Kind> all{{"square_avg"}};
    if (config_.centered) all.push_back({"grad_avg"});
    if (config_.momentum > 0) all.push_back({"momentum"});
    return all;
  }

  void update_range(const Range& range, const Rates& rates) const override {
    const auto& gradients = range.gradients;
    const auto& squares = range.state[0];
    if (rates.weight_decay != 0) gradients.add_(range.values, rates.weight_decay);
    squares.mul_(config_.alpha).addcmul_(gradients, gradients, 1 - config_.alpha);
    const at::Tensor divisor = root(range).add_(config_.eps);
    if (config_.momentum > 0) {
      range.state.back().mul_(config_.momentum).addcdiv_(gradients, divisor);
      range.values.add_(range.state.back(), -rates.learning_rate);
    } else {
      range.values.addcdiv_(gradients, divisor, -rates.learning_rate);
    }
  }

  // Returns the root of the mean square or, if centered, of the variance of the gradients, as a new tensor.
  at::Tensor root(const Range& range) const {
    if (!config_.centered) return range.state[0].sqrt();
    const auto& mean = range.state[1];
    mean.lerp_(range.gradients, 1 - config_.alpha);
    return range.state[0].addcmul(mean, mean, -1).sqrt_();
  }

  RmspropConfig config_;
};

const bool rmsprop_registered =
    Optimizers::global().add<RmspropConfig>("rmsprop", "updates scaled by a running mean of squared gradients",
                                            [](const RmspropConfig& config, const ParameterGroups& groups) {
                                              return std::make_unique<Rmsprop>(config, groups);
                                            });

}  // namespace
}  // namespace phalanx
