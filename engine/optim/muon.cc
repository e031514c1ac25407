// SPDX-License-Identifier: Apache-2.0
// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), for a weight [n, m]. Weights of convolutions [out, in,
// height, width] are treated as [out, rest], and weights [experts, n, m] as that many matrices:
//   b = momentum * b + (1 - momentum) * g;  u = nesterov ? (1 - momentum) * g + momentum * b : b
//   p *= 1 - lr * weight_decay
//   p -= lr * sqrt(max(1, n / m)) * orthogonal(u)
// orthogonal() brings all singular values close to 1, with `steps` iterations of a Newton-Schulz polynomial of degree
// 5:
//   X = u / |u|;  X = a X + (b A + c A^2) X with A = X X^T
// If a weight is sharded between ranks, each has its part of g, b and p. The parts of u are collected on one rank,
// which computes orthogonal(u) and gives each rank its part of it (matrix_exchange.h). All other parameters (vectors,
// and those that `adamw.match` matches: embeddings and the output layer) are updated by AdamW (adam.cc), whose learning
// rate follows the same schedule.
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/fused_step.h"
#include "engine/optim/layerwise.h"
#include "engine/optim/matrix_exchange.h"
#include "engine/optim/moments_config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct InnerAdamWConfig : MomentsConfig {
  InnerAdamWConfig() { beta2 = 0.95; }

  std::string match = "embed|wte|wpe|head|classifier|^fc\\.";

  template <class V>
  void visit(V& v) {
    v("match", match, "regular expression for names of weights that are not hidden weights and use adamw; empty: none");
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

// The coefficients raise small singular values fastest. The resulting singular values are between about 0.7 and 1.2.
at::Tensor orthogonal(at::Tensor x, std::int64_t steps) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();  // makes A the smaller of the two products
  x = x.div(at::linalg_vector_norm(x).clamp_min_(1e-7));
  for (std::int64_t i = 0; i < steps; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, b, c), x, a);
  }
  return tall ? x.t() : x;
}

class Muon final : public LayerwiseOptimizer, public GathersMatrices {
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

  void gather_by(std::unique_ptr<MatrixExchange> exchange) override { exchange_ = std::move(exchange); }

 private:
  // The first moment is Muon's momentum.
  std::vector<Kind> kinds() const override { return {{"exp_avg"}}; }

  std::vector<OwnKind> own_kinds(const Parameter& parameter) const override {
    if (hidden(parameter)) return {};
    return {{"exp_avg_sq", parameter.values.sizes().vec()}};
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

  // Returns true if this parameter is sharded between ranks.
  bool is_sharded(const Parameter& parameter) const {
    return exchange_ && hidden(parameter) && exchange_->placement(parameter.name) != nullptr;
  }

  void attached(const std::vector<const Parameter*>& all) override {
    if (!exchange_) return;
    std::vector<std::string> names;
    for (const auto* const parameter : all) {
      if (is_sharded(*parameter)) names.push_back(parameter->name);
    }
    exchange_->attach(names);
  }

  void update_parameters(const std::vector<Due>& all) const override {
    std::vector<Due> sharded_ones;
    std::vector<at::Tensor> directions;
    for (const auto& due : all) {
      if (is_sharded(due.parameter)) {  // even if it is excluded, since other ranks may update their parts
        sharded_ones.push_back(due);
        directions.push_back(due.excluded ? at::zeros_like(due.parameter.values) : ahead(due.parameter));
      } else if (!due.excluded) {
        update_parameter(due.parameter, due.rates);
      }
    }
    if (!exchange_) return;
    exchange_->update(directions, [this](const at::Tensor& whole) { return direction(whole); });
    for (std::size_t i = 0; i < sharded_ones.size(); ++i) {
      const auto& [parameter, rates, excluded] = sharded_ones[i];
      if (!excluded) move(parameter, rates, directions[i], exchange_->placement(parameter.name)->shape);
    }
  }

  void update_hidden(const Parameter& parameter, const Rates& rates) const {
    move(parameter, rates, direction(ahead(parameter)), parameter.values.sizes());
  }

  // Returns the gradient with momentum, in its own memory.
  at::Tensor ahead(const Parameter& parameter) const {
    const auto& mean = parameter.state[0];
    mean.lerp_(parameter.gradients, 1 - config_.momentum);
    return config_.nesterov ? parameter.gradients.lerp(mean, config_.momentum) : mean.clone();
  }

  at::Tensor direction(const at::Tensor& ahead) const {
    if (ahead.dim() == 3) {
      std::vector<at::Tensor> of_experts;
      for (const auto& matrix : ahead.unbind()) of_experts.push_back(orthogonal(matrix, config_.steps));
      return at::stack(of_experts);
    }
    const auto rows = ahead.size(0), columns = ahead.numel() / rows;
    return orthogonal(ahead.reshape({rows, columns}), config_.steps).reshape(ahead.sizes());
  }

  // `shape` is the shape of the whole parameter.
  static void move(const Parameter& parameter, const Rates& rates, const at::Tensor& direction, at::IntArrayRef shape) {
    if (shape.size() == 3) shape = shape.slice(1);
    const auto rows = static_cast<double>(shape[0]), all = static_cast<double>(c10::multiply_integers(shape));
    const double factor = std::sqrt(std::max(1.0, rows * rows / all));
    if (rates.weight_decay != 0) parameter.values.mul_(1 - rates.learning_rate * rates.weight_decay);
    parameter.values.sub_(direction, rates.learning_rate * factor);
  }

  void update_other(const Parameter& parameter, const Rates& rates) const {
    const auto& adamw = config_.adamw;
    at::_fused_adamw_(parameter.values, parameter.gradients, parameter.state[0], parameter.own_state[0], {},
                      fused_step(parameter.values, rates.update), rates.learning_rate * (adamw.lr / config_.lr),
                      adamw.beta1, adamw.beta2, rates.weight_decay, adamw.eps, /*amsgrad=*/false, /*maximize=*/false);
  }

  MuonConfig config_;
  std::regex others_;
  std::unique_ptr<MatrixExchange> exchange_;  // null if no rank has parts
};

const bool muon_registered = Optimizers::global().add<MuonConfig>(
    "muon", "orthogonalized updates for hidden weights, adamw for the rest",
    [](const MuonConfig& config, const ParameterGroups& groups) { return std::make_unique<Muon>(config, groups); });

}  // namespace
}  // namespace phalanx
