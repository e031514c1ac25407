// SPDX-License-Identifier: Apache-2.0
// Delay-compensated asynchronous SGD (Zheng et al. 2017, Asynchronous Stochastic Gradient Descent with Delay
// Compensation, algorithm 2). An update is a gradient g that client m computed from values b_m; the current values are
// x. The server changes them to x - s (g + lambda g g (x - b_m)), where g g approximates the diagonal of the Hessian.
// The adaptive lambda of section 5 is lambda0 / sqrt(v + eps), where v is a moving average of g g.
// Memory: one copy of the shard per client; with `mean_square`, one more.
#include <ATen/ops/addcmul.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/protocol/element_ranges.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx::ps {
namespace {

struct DcAsgdConfig {
  double lambda = 0.04;
  double mean_square = 0.95;

  template <class V>
  void visit(V& v) {
    v("lambda", lambda, "strength of the compensation; 0: none", config::at_least(0));
    v("mean_square", mean_square, "decay of the average of squared gradients that scales lambda; 0: lambda is constant",
      config::Limits{.min = 0, .max = 1});
  }
};

class DcAsgd final : public UpdateRule {
 public:
  explicit DcAsgd(const DcAsgdConfig& config) : config_(config) {}

  void attach(const at::Tensor& values) override {
    if (!at::isFloatingType(values.scalar_type())) throw ConfigError("rule dc_asgd: gradients cannot be integers");
    values_ = values;
    if (config_.mean_square > 0) squares_ = at::zeros_like(values);
  }

  void apply(const at::Tensor& gradient, const UpdateInfo& info) override {
    const SavedElements unused(info.unused, squares_.defined() ? std::vector{squares_} : std::vector<at::Tensor>{});
    const auto square = gradient.mul(gradient);
    if (squares_.defined()) squares_.mul_(config_.mean_square).add_(square, 1 - config_.mean_square);
    at::Tensor step = gradient;
    if (const auto backup = read_.find(info.client); backup != read_.end()) {
      auto moved = values_.sub(backup->second).mul_(config_.lambda);
      if (squares_.defined()) moved.div_(squares_.add(kSmall).sqrt_());
      step = at::addcmul(gradient, square, moved);
    }
    values_.sub_(step, info.scale);
    unused.restore();
  }

  void read_by(int client) override {
    auto& backup = read_[client];
    if (backup.defined()) {
      backup.copy_(values_);
    } else {
      backup = values_.clone();
    }
  }

  // The values read by clients are not saved: after a server has resumed, clients read before they push.
  StateDict state() override {
    if (!squares_.defined()) return {};
    return {{"mean_square", squares_}};
  }

 private:
  static constexpr double kSmall = 1e-7;

  DcAsgdConfig config_;
  at::Tensor values_, squares_;
  std::map<int, at::Tensor> read_;  // key: client; value: the values that it read last
};

const bool dc_asgd_registered = UpdateRules::global().add<DcAsgdConfig>(
    "dc_asgd",
    "gradient descent that compensates for the delay of gradients; needs a scale, which is the learning rate",
    [](const DcAsgdConfig& config) { return std::make_unique<DcAsgd>(config); });

}  // namespace
}  // namespace phalanx::ps
