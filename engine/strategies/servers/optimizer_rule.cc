// SPDX-License-Identifier: Apache-2.0
// An optimizer of the engine as the update rule of a table. Clients push gradients, and the scale of a push is the
// learning rate. The optimizer state is stored with the values, on every server for the elements that it holds. With a
// staleness power p, a gradient that is t updates late is applied at rate / (1 + t)^p (staleness-aware rates: Zhang,
// Gupta, Lian and Liu 2015, arXiv:1511.05950, equation 5, where p is 1). With `clients` P > 1, one step is taken with
// the mean of every P gradients; if each client waits for all others in its clock, this is one step per clock. A step
// does not change elements that none of its gradients uses.
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/base/error.h"
#include "framework/ps/protocol/element_ranges.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx {
namespace {

struct OptimizerRuleConfig {
  Optimizers::Choice optimizer{"sgd"};
  double staleness_power = 0;
  std::int64_t clients = 1;

  template <class V>
  void visit(V& v) {
    v("optimizer", optimizer,
      "optimizer that updates every element independently; its learning rate comes with each push");
    v("staleness_power", staleness_power,
      "p: gradients of values that are t updates old are applied at rate / (1 + t)^p", config::at_least(0));
    v("clients", clients, "number of gradients whose mean makes one step", config::at_least(1));
  }
};

class OptimizerRule final : public ps::UpdateRule {
 public:
  explicit OptimizerRule(const OptimizerRuleConfig& config) : config_(config), optimizer_(config.optimizer.make({})) {
    if (optimizer_->cut() == Cut::kAnywhere) return;
    throw ConfigError(
        "rule optimizer: " + config.optimizer.selected() +
        " needs whole parameters, but a server has only parts of them; use one that updates every element "
        "independently, such as adam");
  }

  void attach(const at::Tensor& values) override {
    if (values.scalar_type() != at::kFloat && values.scalar_type() != at::kDouble) {
      throw ConfigError(std::string("rule optimizer: parameters are float32 or float64, not ") +
                        c10::toString(values.scalar_type()));
    }
    values_ = values;
    gradients_ = at::zeros_like(values);
    if (config_.clients > 1) used_ = at::zeros({values.numel()}, at::kByte);
    optimizer_->attach({Slice{.values = values, .gradients = gradients_}});
  }

  void apply(const at::Tensor& gradients, const ps::UpdateInfo& info) override {
    gradients_.add_(gradients);  // zeroed by every step
    if (config_.clients > 1) mark_used(info.unused);
    auto& gathered = number(gathered_);
    if (++gathered < config_.clients) return;
    gathered = 0;
    if (config_.clients > 1) gradients_.div_(config_.clients);
    const ps::SavedElements unused(config_.clients > 1 ? ps::ranges_of_zeros(used_) : info.unused, of_elements());
    const double age = 1 + static_cast<double>(info.staleness);
    optimizer_->set_learning_rate(info.scale * std::pow(age, -config_.staleness_power));
    optimizer_->set_updates(number(updates_));
    optimizer_->update();
    number(updates_) = optimizer_->updates();
    unused.restore();
    if (config_.clients > 1) used_.zero_();
  }

  void read_by(int) override {}

  StateDict state() override {
    StateDict all{{"updates", updates_}};
    for (auto& one : optimizer_->state()) all.push_back({one.kind, one.values});
    if (config_.clients > 1) {
      all.push_back({"gathered", gathered_});
      all.push_back({"gathered_use", used_});
      all.push_back({"gathered_gradients", gradients_});  // unlike "sum", not a name that an optimizer uses
    }
    return all;
  }

 private:
  static std::int64_t& number(const at::Tensor& tensor) { return *tensor.mutable_data_ptr<std::int64_t>(); }

  void mark_used(const ps::ElementRanges& unused) {
    std::int64_t begin = 0;
    for (const auto& range : unused) {
      used_.narrow(0, begin, range.begin - begin).fill_(1);
      begin = range.end;
    }
    used_.narrow(0, begin, used_.numel() - begin).fill_(1);
  }

  // Returns all tensors that have a number for each element.
  std::vector<at::Tensor> of_elements() {
    std::vector<at::Tensor> all{values_};
    for (const auto& one : optimizer_->state()) all.push_back(one.values);
    return all;
  }

  OptimizerRuleConfig config_;
  std::unique_ptr<Optimizer> optimizer_;
  at::Tensor values_;
  at::Tensor gradients_;  // of the next step, accumulated
  at::Tensor used_;       // [n] bytes, with several clients: 1 if one of these gradients uses the element
  at::Tensor gathered_ = at::zeros({1}, at::kLong), updates_ = at::zeros({1}, at::kLong);
};

const bool optimizer_rule_registered = ps::UpdateRules::global().add<OptimizerRuleConfig>(
    "optimizer", "an optimizer that takes updates as gradients; needs a scale, which is the learning rate",
    [](const OptimizerRuleConfig& config) { return std::make_unique<OptimizerRule>(config); });

}  // namespace
}  // namespace phalanx
