// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), for a weight [n, m]; weights of convolutions
// [out, in, ...] are taken for [out, rest]:
//   b = momentum * b + (1 - momentum) * g;  u = nesterov ? (1 - momentum) * g + momentum * b : b
//   p *= 1 - lr * weight_decay
//   p -= lr * sqrt(max(1, n / m)) * orthogonal(u)
// orthogonal() makes all singular values about 1, by `steps` iterations of a Newton-Schulz polynomial of degree 5:
//   X = u / |u|;  X = a X + (b A + c A^2) X with A = X X^T
// All else (vectors, and what `adamw.match` names: embeddings and the output layer) is updated by AdamW (adam.cc),
// whose learning rate follows the schedule as well.
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>

#include "engine/optim/layerwise.h"
#include "engine/optim/moments_config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct InnerAdamWConfig : MomentsConfig {
  InnerAdamWConfig() { beta2 = 0.95; }

  std::string match = "embed|wte|wpe|head|classifier|^fc\\.";

  template <class V>
  void visit(V& v) {
    v("match", match, "regular expression for names of weights that are not hidden weights; empty: none");
    MomentsConfig::visit(v);
  }
};

struct MuonConfig {
  double lr = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t steps = 5;
  double weight_decay = 0;
  InnerAdamWConfig adamw;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::above(0));
    v("momentum", momentum, "decay rate of the mean gradient, below 1", config::between(0, 1));
    v("nesterov", nesterov, "Nesterov momentum");
    v("steps", steps, "iterations of the orthogonalization", config::between(1, 20));
    v("weight_decay", weight_decay, "decoupled weight decay, also of adamw", config::at_least(0));
    v("adamw", adamw, "adamw for all other parameters");
  }
};

// The coefficients raise small singular values fastest; those of the result lie between about 0.7 and 1.2.
at::Tensor orthogonal(at::Tensor x, std::int64_t steps) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();  // A is then the smaller of the two
  x = x.div(at::linalg_vector_norm(x).clamp_min_(1e-7));
  for (std::int64_t i = 0; i < steps; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, b, c), x, a);
  }
  return tall ? x.t() : x;
}

class Muon final : public LayerwiseOptimizer {
 public:
  Muon(const MuonConfig& config, const ParameterGroups& groups)
      : LayerwiseOptimizer("muon", config.lr, config.weight_decay, groups), config_(config) {
    if (config.momentum == 1 || config.adamw.beta1 == 1 || config.adamw.beta2 == 1) {
      throw ConfigError("momentum, adamw.beta1 and adamw.beta2 must be below 1");
    }
    try {
      others_.assign(config.adamw.match, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      throw ConfigError("adamw.match: \"" + config.adamw.match + "\" is not a regular expression: " + error.what());
    }
  }

 private:
  // The mean gradient is Muon's momentum.
  std::vector<std::string> kinds() const override { return {"exp_avg"}; }

  std::vector<OwnKind> own_kinds(const Parameter& parameter) const override {
    return hidden(parameter) ? std::vector<OwnKind>{}
                             : std::vector<OwnKind>{{"exp_avg_sq", parameter.values.sizes().vec()}};
  }

  bool hidden(const Parameter& parameter) const {
    const auto& match = config_.adamw.match;
    return !parameter.vector() && (match.empty() || !std::regex_search(parameter.name, others_));
  }

  void update_parameter(const Parameter& parameter, const Rates& rates) const override {
    if (hidden(parameter)) {
      update_hidden(parameter, rates);
    } else {
      update_other(parameter, rates);
    }
  }

  void update_hidden(const Parameter& parameter, const Rates& rates) const {
    const auto& values = parameter.values;
    const auto& mean = parameter.state[0];
    mean.lerp_(parameter.gradients, 1 - config_.momentum);
    const at::Tensor ahead = config_.nesterov ? parameter.gradients.lerp(mean, config_.momentum) : mean;
    const auto rows = values.size(0), columns = values.numel() / rows;
    const double shape = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    if (rates.weight_decay != 0) values.mul_(1 - rates.learning_rate * rates.weight_decay);
    const at::Tensor direction = orthogonal(ahead.reshape({rows, columns}), config_.steps);
    values.sub_(direction.view(values.sizes()), rates.learning_rate * shape);
  }

  void update_other(const Parameter& parameter, const Rates& rates) const {
    const auto& adamw = config_.adamw;
    at::_fused_adamw_(parameter.values, parameter.gradients, parameter.state[0], parameter.own_state[0], {},
                      at::scalar_tensor(static_cast<double>(rates.update), at::kDouble),
                      rates.learning_rate * (adamw.lr / config_.lr), adamw.beta1, adamw.beta2, rates.weight_decay,
                      adamw.eps, /*amsgrad=*/false, /*maximize=*/false);
  }

  MuonConfig config_;
  std::regex others_;
};

const bool registered = Optimizers::global().add<MuonConfig>(
    "muon", "orthogonalized updates for hidden weights, adamw for the rest",
    [](const MuonConfig& config, const ParameterGroups& groups) { return std::make_unique<Muon>(config, groups); });

}  // namespace
}  // namespace phalanx
