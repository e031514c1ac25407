// SPDX-License-Identifier: Apache-2.0
// Adafactor (Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5), without momentum, where t is the number of
// the update and RMS the root mean square:
//   b = 1 - t^-decay                                      decay of the second moment
//   a = max(eps2, RMS(p)) * min(lr, 1 / sqrt(t))          relative_step; otherwise a = lr
//   matrix [n, m]: R = b * R + (1 - b) * mean of (g^2 + eps1) over each row;  C the same over each column
//                  V = R C / mean(R)
//   vector:        V = b * V + (1 - b) * (g^2 + eps1)
//   u = g / sqrt(V);  u /= max(1, RMS(u) / clip)
//   p *= 1 - lr * weight_decay;  p -= a * u
// A matrix of n x m needs n + m numbers of state. Weights of convolutions [out, in, ...] are matrices [out, rest].
// Means replace the paper's sums, with the only difference that eps1 is counted once.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/outer.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/optim/layerwise.h"

namespace phalanx {
namespace {

struct AdafactorConfig {
  double lr = 0.01;
  double decay = 0.8;
  double clip = 1;
  double eps1 = 1e-30;
  double eps2 = 0.001;
  double weight_decay = 0;
  bool relative_step = true;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate; with relative_step, its upper limit relative to the parameter's size",
      config::at_least(0));
    v("decay", decay, "exponent of the second moment's decay schedule, 1 - t^-decay", config::between(0, 1));
    v("clip", clip, "maximum root mean square of an update, before the learning rate is applied", config::above(0));
    v("eps1", eps1, "added to squared gradients", config::above(0));
    v("eps2", eps2, "lower limit on the parameter's size that relative steps use", config::at_least(0));
    v("weight_decay", weight_decay, "decoupled weight decay", config::at_least(0));
    v("relative_step", relative_step, "scale updates with the parameter's size and decrease them over time");
  }
};

double root_mean_square(const at::Tensor& values) { return values.square().mean().sqrt().item<double>(); }

class Adafactor final : public LayerwiseOptimizer {
 public:
  Adafactor(const AdafactorConfig& config, const ParameterGroups& groups)
      : LayerwiseOptimizer("adafactor", config.lr, config.weight_decay, groups), config_(config) {}

 private:
  std::vector<OwnKind> own_kinds(const Parameter& parameter) const override {
    const auto& values = parameter.values;
    if (parameter.vector()) return {{"exp_avg_sq", values.sizes().vec()}};
    return {{"exp_avg_sq_row", {values.size(0)}}, {"exp_avg_sq_col", {values.numel() / values.size(0)}}};
  }

  void update_parameter(const Parameter& parameter, const Rates& rates) const override {
    const auto t = static_cast<double>(rates.update);
    at::Tensor step = parameter.gradients * inverse_root(parameter, std::pow(t, -config_.decay));
    step.div_(std::max(1.0, root_mean_square(step) / config_.clip));
    double rate = rates.learning_rate;
    if (config_.relative_step) {
      rate = std::min(rate, 1 / std::sqrt(t)) * std::max(config_.eps2, root_mean_square(parameter.values));
    }
    if (rates.weight_decay != 0) parameter.values.mul_(1 - rates.learning_rate * rates.weight_decay);
    parameter.values.sub_(step, rate);
  }

  // Returns 1 / sqrt(V) after updating V with these gradients, whose weight in V is `fresh`.
  at::Tensor inverse_root(const Parameter& parameter, double fresh) const {
    const at::Tensor squares = parameter.gradients.square().add_(config_.eps1);
    const auto& state = parameter.own_state;
    if (parameter.vector()) return state[0].lerp_(squares, fresh).rsqrt();
    const at::Tensor matrix = squares.reshape({squares.size(0), -1});
    state[0].lerp_(matrix.mean(1), fresh);
    state[1].lerp_(matrix.mean(0), fresh);
    const at::Tensor rows = (state[0] / state[0].mean()).rsqrt_();
    return at::outer(rows, state[1].rsqrt()).view(squares.sizes());
  }

  AdafactorConfig config_;
};

const bool adafactor_registered = Optimizers::global().add<AdafactorConfig>(
    "adafactor", "adaptive updates with a second moment factored into rows and columns",
    [](const AdafactorConfig& config, const ParameterGroups& groups) {
      return std::make_unique<Adafactor>(config, groups);
    });

}  // namespace
}  // namespace phalanx
