// Stochastic gradient descent with momentum, as torch.optim.SGD defines it:
//   g += weight_decay * p;  v = momentum * v + (1 - dampening) * g (v = g at first)
//   p -= lr * (nesterov ? g + momentum * v : v)
// One fused pass over each flat slice (at::_fused_sgd_).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

#include "engine/optim/optimizer.h"
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
    v("momentum", momentum, "share of the last step kept in the next", config::between(0, 1));
    v("dampening", dampening, "share of the gradient kept out of the momentum", config::between(0, 1));
    v("weight_decay", weight_decay, "L2 penalty, added to the gradient", config::at_least(0));
    v("nesterov", nesterov, "look one step ahead (Sutskever et al. 2013)");
  }
};

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdConfig& config) : config_(config) {
    if (config.nesterov && (config.momentum == 0 || config.dampening != 0)) {
      throw ConfigError("nesterov needs a momentum above 0 and no dampening");
    }
  }

  void attach(std::vector<Slice> slices) override {
    values_.clear(), gradients_.clear(), momentum_.clear();
    for (auto& slice : slices) {
      if (config_.momentum > 0) momentum_.push_back(at::empty_like(slice.values));
      values_.push_back(std::move(slice.values));
      gradients_.push_back(std::move(slice.gradients));
    }
    first_ = true;
  }

  void update() override {
    if (values_.empty()) return;
    const at::NoGradGuard no_grad;
    at::_fused_sgd_(values_, gradients_, momentum_, config_.weight_decay, config_.momentum, config_.lr,
                    config_.dampening, config_.nesterov, /*maximize=*/false, first_);
    for (auto& gradient : gradients_) gradient.zero_();
    first_ = false;
  }

  double learning_rate() const override { return config_.lr; }
  void set_learning_rate(double rate) override { config_.lr = rate; }

 private:
  SgdConfig config_;
  bool first_ = true;
  std::vector<at::Tensor> values_, gradients_, momentum_;
};

const bool registered =
    Optimizers::global().add<SgdConfig>("sgd", "stochastic gradient descent, with momentum",
                                        [](const SgdConfig& config) { return std::make_unique<Sgd>(config); });

}  // namespace
}  // namespace phalanx
