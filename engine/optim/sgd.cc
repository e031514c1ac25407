// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, as in torch.optim.SGD:
//   g += weight_decay * p;  v = momentum * v + (1 - dampening) * g (v = g at first)
//   p -= lr * (nesterov ? g + momentum * v : v)
#include <ATen/ops/_fused_sgd.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/optim/elementwise.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct SgdConfig {
  double lr = 0.1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("momentum", momentum, "momentum factor", config::between(0, 1));
    v("dampening", dampening, "dampening of the momentum", config::between(0, 1));
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
    v("nesterov", nesterov, "Nesterov momentum (Sutskever et al. 2013)");
  }
};

class Sgd final : public ElementwiseOptimizer {
 public:
  Sgd(const SgdConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {
    if (config.nesterov && (config.momentum == 0 || config.dampening != 0)) {
      throw ConfigError("nesterov needs a momentum above 0 and no dampening");
    }
  }

 private:
  std::vector<Kind> kinds() const override {
    if (config_.momentum == 0) return {};
    return {{"momentum"}};
  }

  void update_range(const Range& range, const Rates& rates) const override {
    rates.with_learning_rate([&](const auto& learning_rate) {
      at::_fused_sgd_(range.values, range.gradients, range.state, rates.weight_decay, config_.momentum, learning_rate,
                      config_.dampening, config_.nesterov, /*maximize=*/false,
                      /*is_first_step=*/rates.update == 1, /*grad_scale=*/std::nullopt, rates.skip);
    });
  }

  bool skips() const override { return true; }
  bool records() const override { return true; }

  SgdConfig config_;
};

const bool sgd_registered = Optimizers::global().add<SgdConfig>(
    "sgd", "stochastic gradient descent, with momentum",
    [](const SgdConfig& config, const ParameterGroups& groups) { return std::make_unique<Sgd>(config, groups); });

}  // namespace
}  // namespace phalanx
