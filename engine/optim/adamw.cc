// AdamW, Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019, arXiv:1711.05101), with AMSGrad
// (Reddi et al. 2018, arXiv:1904.09237), as torch.optim.AdamW defines it, t being the update's number:
//   p *= 1 - lr * weight_decay
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;  w = amsgrad ? max(w, v) : v
//   p -= lr * (m / (1 - beta1^t)) / (sqrt(w / (1 - beta2^t)) + eps)
#include <ATen/ops/_fused_adamw.h>

#include <memory>

#include "engine/optim/adam_config.h"
#include "engine/optim/elementwise.h"

namespace phalanx {
namespace {

struct AdamWConfig : MomentsConfig {
  double weight_decay = 0.01;

  template <class V>
  void visit(V& v) {
    MomentsConfig::visit(v);
    v("weight_decay", weight_decay, "share of a value, times the learning rate, that an update takes away",
      config::at_least(0));
  }
};

class AdamW final : public ElementwiseOptimizer {
 public:
  AdamW(const AdamWConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {
    config.check();
  }

 private:
  std::vector<Kind> kinds() const override { return moments<Kind>(config_); }

  void update_run(const Run& run, const Rates& rates) const override {
    const at::TensorList state = run.state, largest = config_.amsgrad ? state.slice(2) : at::TensorList{};
    at::_fused_adamw_(run.values, run.gradients, state[0], state[1], largest, rates.update_tensor, rates.learning_rate,
                      config_.beta1, config_.beta2, rates.weight_decay, config_.eps, config_.amsgrad,
                      /*maximize=*/false);
  }

  AdamWConfig config_;
};

const bool registered = Optimizers::global().add<AdamWConfig>(
    "adamw", "adam with weight decay apart from the gradient",
    [](const AdamWConfig& config, const ParameterGroups& groups) { return std::make_unique<AdamW>(config, groups); });

}  // namespace
}  // namespace phalanx
