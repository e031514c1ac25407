// SPDX-License-Identifier: Apache-2.0
// Adagrad (Duchi, Hazan and Singer 2011, JMLR 12), as in torch.optim.Adagrad, where t is the number of the update:
//   g += weight_decay * p;  s += g^2
//   p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
#include <ATen/ops/_fused_adagrad.h>

#include <memory>
#include <optional>

#include "engine/optim/elementwise.h"

namespace phalanx {
namespace {

struct AdagradConfig {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_sum = 0;
  double eps = 1e-10;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("lr_decay", lr_decay, "the learning rate is divided by 1 + lr_decay * past updates", config::at_least(0));
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
    v("initial_sum", initial_sum, "initial value of the sum of squared gradients", config::at_least(0));
    v("eps", eps, "added to the denominator for numerical stability", config::above(0));
  }
};

class Adagrad final : public ElementwiseOptimizer {
 public:
  Adagrad(const AdagradConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {}

 private:
  std::vector<Kind> kinds() const override { return {{"sum", config_.initial_sum}}; }

  void update_range(const Range& range, const Rates& rates) const override {
    rates.with_learning_rate([&](const auto& learning_rate) {
      at::_fused_adagrad_(range.values, range.gradients, range.state[0], rates.update_tensor, learning_rate,
                          config_.lr_decay, rates.weight_decay, config_.eps, /*maximize=*/false,
                          /*grad_scale=*/std::nullopt, rates.skip);
    });
  }

  bool skips() const override { return true; }
  bool records() const override { return true; }

  AdagradConfig config_;
};

const bool adagrad_registered =
    Optimizers::global().add<AdagradConfig>("adagrad", "updates scaled by the sum of squared gradients",
                                            [](const AdagradConfig& config, const ParameterGroups& groups) {
                                              return std::make_unique<Adagrad>(config, groups);
                                            });

}  // namespace
}  // namespace phalanx
