// SPDX-License-Identifier: Apache-2.0
// The rules of sparse tables. x: a row of dim elements, u: its update, s: the scale of the push, which is the learning
// rate if u is a gradient.
//
//   copy      s u
//   add       x + s u
//   sgd       x - s u
//   adagrad   a += u u, x - s u / (sqrt(a) + eps)     (Duchi, Hazan and Singer 2011, Adaptive Subgradient Methods for
//             Online Learning and Stochastic Optimization, figure 1). With `rowwise`, a is one number for each row,
//             to which the mean of u u is added: the EXACT_ROWWISE_ADAGRAD of FBGEMM, which TorchRec uses. State: dim
//             numbers, or one.
//   adam      Adam (Kingma and Ba 2015, algorithm 1). Each row has its own moments and step count, which change only
//             when the row is updated. torch.optim.SparseAdam does the same, except for the count. State: 2 dim + 1
//             numbers.
#include <cmath>
#include <memory>

#include "framework/base/config/no_fields.h"
#include "framework/ps/rules/sparse_rule.h"

namespace phalanx::ps {
namespace {

class CopyRows final : public RowRule {
 public:
  std::int64_t state_size(std::int64_t) const override { return 0; }
  void apply(std::span<float> values, std::span<float>, const float* update, const UpdateInfo& info) const override {
    const auto scale = static_cast<float>(info.scale);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * update[i];
  }
};

template <int kSign>
class AddToRows final : public RowRule {
 public:
  std::int64_t state_size(std::int64_t) const override { return 0; }
  void apply(std::span<float> values, std::span<float>, const float* update, const UpdateInfo& info) const override {
    const auto scale = static_cast<float>(kSign * info.scale);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * update[i];
  }
};

struct AdagradConfig {
  bool rowwise = false;
  double eps = 1e-10;

  template <class V>
  void visit(V& v) {
    v("rowwise", rowwise, "one accumulator for each row instead of each element");
    v("eps", eps, "added to the root of the accumulator", config::at_least(0));
  }
};

class Adagrad final : public RowRule {
 public:
  explicit Adagrad(const AdagradConfig& config) : config_(config) {}

  std::int64_t state_size(std::int64_t dim) const override { return config_.rowwise ? 1 : dim; }

  void apply(std::span<float> values, std::span<float> state, const float* update,
             const UpdateInfo& info) const override {
    const auto rate = static_cast<float>(info.scale), eps = static_cast<float>(config_.eps);
    if (config_.rowwise) {
      float sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) sum += update[i] * update[i];
      state[0] += sum / static_cast<float>(values.size());
      const float step = divided(rate, std::sqrt(state[0]) + eps);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= step * update[i];
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) {
        state[i] += update[i] * update[i];
        values[i] -= divided(rate * update[i], std::sqrt(state[i]) + eps);
      }
    }
  }

 private:
  // Without eps, an element whose gradients were all zero does not change.
  static float divided(float value, float by) { return by > 0 ? value / by : 0; }

  AdagradConfig config_;
};

struct AdamConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  template <class V>
  void visit(V& v) {
    v("beta1", beta1, "decay of the average of gradients", config::Limits{.min = 0, .max = 0.999999});
    v("beta2", beta2, "decay of the average of squared gradients", config::Limits{.min = 0, .max = 0.999999});
    v("eps", eps, "added to the root of the average", config::above(0));
  }
};

class Adam final : public RowRule {
 public:
  explicit Adam(const AdamConfig& config) : config_(config) {}

  std::int64_t state_size(std::int64_t dim) const override { return 2 * dim + 1; }

  void apply(std::span<float> values, std::span<float> state, const float* update,
             const UpdateInfo& info) const override {
    const std::size_t dim = values.size();
    float* const mean = state.data();
    float* const square = mean + dim;
    float& count = state[2 * dim];  // exact up to 2^24, where both corrections have long been 1
    count += 1;
    const auto beta1 = static_cast<float>(config_.beta1), beta2 = static_cast<float>(config_.beta2);
    const auto eps = static_cast<float>(config_.eps);
    const auto step = static_cast<float>(info.scale / (1 - std::pow(config_.beta1, count)));
    const auto correction = static_cast<float>(1 / std::sqrt(1 - std::pow(config_.beta2, count)));
    for (std::size_t i = 0; i < dim; ++i) {
      mean[i] = beta1 * mean[i] + (1 - beta1) * update[i];
      square[i] = beta2 * square[i] + (1 - beta2) * update[i] * update[i];
      values[i] -= step * mean[i] / (std::sqrt(square[i]) * correction + eps);
    }
  }

 private:
  AdamConfig config_;
};

template <class Rule>
bool register_row_rule(const char* name, const char* help) {
  return RowRules::global().add<NoFields>(name, help, [](const NoFields&) { return std::make_unique<Rule>(); });
}

const bool copy_rows = register_row_rule<CopyRows>("copy", "rows become the update");
const bool add_rows = register_row_rule<AddToRows<1>>("add", "updates are added");
const bool sgd_rows = register_row_rule<AddToRows<-1>>("sgd", "gradient descent; the scale is the learning rate");
const bool adagrad_rows = RowRules::global().add<AdagradConfig>(
    "adagrad", "gradient descent with a learning rate per element, or row, that decreases as its gradients add up",
    [](const AdagradConfig& config) { return std::make_unique<Adagrad>(config); });
const bool adam =
    RowRules::global().add<AdamConfig>("adam", "Adam whose moments move only when the row is updated",
                                       [](const AdamConfig& config) { return std::make_unique<Adam>(config); });

}  // namespace
}  // namespace phalanx::ps
