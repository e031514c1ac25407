// SPDX-License-Identifier: Apache-2.0
// FTRL-Proximal (McMahan et al. 2013, Ad Click Prediction: a View from the Trenches, algorithm 1), alpha = lr:
//   s = (sqrt(n + g^2) - sqrt(n)) / alpha;  z += g - s * p;  n += g^2
//   p = |z| <= l1 ? 0 : -(z - sign(z) * l1) / ((beta + sqrt(n)) / alpha + l2)
// with l2 = weight_decay. The state is not z but c, which is z clamped to [-l1, l1]. With d = beta + sqrt(n) + alpha
// l2, z is c - d p / alpha, so p changes by alpha (c' - c - g) / d'. A change of only the learning rate thus moves
// nothing, and values that the L1 penalty made 0 stay 0 under a schedule. The paper starts at p = 0 with z = 0; for
// other initial values, z starts as the value from which they follow.
#include <ATen/core/Tensor.h>

#include <memory>

#include "engine/optim/elementwise.h"

namespace phalanx {
namespace {

struct FtrlConfig {
  double lr = 0.1;
  double beta = 1;
  double l1 = 0;
  double weight_decay = 0;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("beta", beta, "added to the root of the sum of squared gradients", config::above(0));
    v("l1", l1, "L1 penalty, which makes values exactly 0", config::at_least(0));
    v("weight_decay", weight_decay, "L2 penalty, l2 of the paper", config::at_least(0));
  }
};

class Ftrl final : public ElementwiseOptimizer {
 public:
  Ftrl(const FtrlConfig& config, const ParameterGroups& groups)
      : ElementwiseOptimizer(config.lr, config.weight_decay, groups), config_(config) {}

 private:
  std::vector<Kind> kinds() const override { return {{"sum"}, {"clamped"}}; }

  void update_range(const Range& range, const Rates& rates) const override {
    const auto& sum = range.state[0];
    const auto& clamped = range.state[1];
    const double rate = rates.learning_rate, l1 = config_.l1;
    if (rates.update == 1) clamped.add_(range.values.sign(), -l1);
    sum.addcmul_(range.gradients, range.gradients);
    if (rate == 0) return;
    const at::Tensor divisor = sum.sqrt().add_(config_.beta + rate * rates.weight_decay).div_(rate);
    const at::Tensor moved = clamped.add(range.gradients);
    const at::Tensor linear = moved.addcmul(divisor, range.values, -1);
    clamped.copy_(linear.clamp(-l1, l1));
    range.values.addcdiv_(moved.sub_(clamped), divisor, -1);
    range.values.masked_fill_(linear.eq(clamped), 0);  // instead of a rounding error
  }

  FtrlConfig config_;
};

const bool ftrl_registered = Optimizers::global().add<FtrlConfig>(
    "ftrl", "FTRL-Proximal: rates by the sum of squared gradients, and an L1 penalty that makes values 0",
    [](const FtrlConfig& config, const ParameterGroups& groups) { return std::make_unique<Ftrl>(config, groups); });

}  // namespace
}  // namespace phalanx
