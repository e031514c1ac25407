// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba 2015, arXiv:1412.6980) and AdamW, in which weight decay is decoupled from the gradient
// (Loshchilov and Hutter 2019, arXiv:1711.05101), both with optional AMSGrad (Reddi et al. 2018, arXiv:1904.09237), as
// in torch.optim.Adam and torch.optim.AdamW, where t is the number of the update:
//   adam:  g += weight_decay * p
//   adamw: p *= 1 - lr * weight_decay
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;  w = amsgrad ? max(w, v) : v
//   p -= lr * (m / (1 - beta1^t)) / (sqrt(w / (1 - beta2^t)) + eps)
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/optim/elementwise.h"
#include "engine/optim/moments_config.h"

namespace phalanx {
namespace {

struct AmsgradConfig : MomentsConfig {
  bool amsgrad = false;

  template <class V>
  void visit(V& v) {
    MomentsConfig::visit(v);
    v("amsgrad", amsgrad, "use the maximum of past second moments (Reddi et al. 2018)");
  }
};

struct AdamConfig : AmsgradConfig {
  double weight_decay = 0;

  template <class V>
  void visit(V& v) {
    AmsgradConfig::visit(v);
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
  }

  static void update(const auto&... arguments) { at::_fused_adam_(arguments...); }
};

struct AdamWConfig : AmsgradConfig {
  double weight_decay = 0.01;

  template <class V>
  void visit(V& v) {
    AmsgradConfig::visit(v);
    v("weight_decay", weight_decay, "decoupled weight decay", config::at_least(0));
  }

  static void update(const auto&... arguments) { at::_fused_adamw_(arguments...); }
};

template <class Config>
class Adam final : public ElementwiseOptimizer {
 public:
  Adam(const Config& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {
    config.check();
  }

 private:
  std::vector<Kind> kinds() const override {
    std::vector<Kind> kinds{{"exp_avg"}, {"exp_avg_sq"}};
    if (config_.amsgrad) kinds.push_back({"max_exp_avg_sq"});
    return kinds;
  }

  void update_range(const Range& range, const Rates& rates) const override {
    const at::TensorList state = range.state, largest = config_.amsgrad ? state.slice(2) : at::TensorList{};
    rates.with_learning_rate([&](const auto& learning_rate) {
      Config::update(range.values, range.gradients, state[0], state[1], largest, rates.update_tensor, learning_rate,
                     config_.beta1, config_.beta2, rates.weight_decay, config_.eps, config_.amsgrad,
                     /*maximize=*/false, /*grad_scale=*/std::nullopt, rates.skip);
    });
  }

  bool skips() const override { return true; }
  bool records() const override { return true; }

  Config config_;
};

template <class Config>
std::unique_ptr<Optimizer> make_adam(const Config& config, const ParameterGroups& groups) {
  return std::make_unique<Adam<Config>>(config, groups);
}

const bool adam_registered =
    Optimizers::global().add<AdamConfig>("adam", "adaptive moment estimation", make_adam<AdamConfig>);

const bool registered_w =
    Optimizers::global().add<AdamWConfig>("adamw", "adam with decoupled weight decay", make_adam<AdamWConfig>);

}  // namespace
}  // namespace phalanx
