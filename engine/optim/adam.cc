// Adam (Kingma and Ba 2015, arXiv:1412.6980), with AMSGrad (Reddi et al. 2018, arXiv:1904.09237), as torch.optim.Adam
// defines it, t being the update's number:
//   g += weight_decay * p
//   m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;  w = amsgrad ? max(w, v) : v
//   p -= lr * (m / (1 - beta1^t)) / (sqrt(w / (1 - beta2^t)) + eps)
#include <ATen/ops/_fused_adam.h>

#include <memory>

#include "engine/optim/adam_config.h"
#include "engine/optim/elementwise.h"

namespace phalanx {
namespace {

struct AdamConfig : MomentsConfig {
  double weight_decay = 0;

  template <class V>
  void visit(V& v) {
    MomentsConfig::visit(v);
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
  }
};

class Adam final : public ElementwiseOptimizer {
 public:
  Adam(const AdamConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {
    config.check();
  }

 private:
  std::vector<Kind> kinds() const override { return moments<Kind>(config_); }

  void update_run(const Run& run, const Rates& rates) const override {
    const at::TensorList state = run.state, largest = config_.amsgrad ? state.slice(2) : at::TensorList{};
    at::_fused_adam_(run.values, run.gradients, state[0], state[1], largest, rates.update_tensor, rates.learning_rate,
                     config_.beta1, config_.beta2, rates.weight_decay, config_.eps, config_.amsgrad,
                     /*maximize=*/false);
  }

  AdamConfig config_;
};

const bool registered = Optimizers::global().add<AdamConfig>(
    "adam", "steps scaled by running means of gradients and their squares",
    [](const AdamConfig& config, const ParameterGroups& groups) { return std::make_unique<Adam>(config, groups); });

}  // namespace
}  // namespace phalanx
