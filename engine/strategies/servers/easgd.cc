// SPDX-License-Identifier: Apache-2.0
// Elastic averaging SGD (Zhang, Choromanska and LeCun 2015, Deep learning with Elastic Averaging SGD, algorithm 1).
// Each rank trains its own replica x with its own optimizer, and every `every` steps the replica and the centre c on
// the parameter servers move towards each other:
//
//   e = alpha (x - c)    x -= e    c += e    alpha = beta / P
//
// If asynchronous, the servers move c when x arrives, one rank after the other: c' = c + alpha (x - c). The rank gets
// c' and computes e from it, alpha (x - c) = alpha / (1 - alpha) (x - c'). If synchronous, all ranks read the same c
// before any of them moves it. With `prefetch`, c was read some steps earlier.
//
// With sgd and nesterov this is the paper's EAMSGD, algorithm 2, with one difference. The paper has x and a velocity v;
// the replica holds x + delta v, the point at which gradients are computed. The elastic force acts between this point
// and c, while in the paper it acts between x and c.
// Wire: the parameters' bytes from the servers and back, per rank and exchange.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sub.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/strategies/servers/server_strategy.h"
#include "engine/strategies/servers/update_schedule.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

struct EasgdConfig : UpdateSchedule {
  double beta = 0.9;
  bool synchronous = false;

  template <class V>
  void visit(V& v) {
    UpdateSchedule::visit(v);
    v("beta", beta, "how far the centre moves to the mean of the replicas in an exchange of all ranks",
      config::Limits{.min = 0, .max = 1, .exclusive = true});
    v("synchronous", synchronous, "all ranks read the same centre, and wait for each other");
  }
};

enum Rule : std::size_t { kAdd, kLerp };

std::string lerp_rule(double weight) { return format_text("{name: lerp, weight: %.17g}", weight); }

class Easgd final : public ServerStrategy {
 public:
  Easgd(const EasgdConfig& config, const StrategyContext& context)
      : ServerStrategy(context, {.name = "centre",
                                 .rules = {"add", lerp_rule(config.beta / context.group->size())},
                                 .staleness = config.synchronous ? 0 : ps::kAsynchronous}),
        config_(config),
        alpha_(config.beta / context.group->size()) {}

  StrategyExtensions extensions() override { return {.keeps_centre = config_.synchronous ? nullptr : this}; }

  void after_update(std::int64_t step) override {
    const at::NoGradGuard no_grad;
    if (config_.prefetches(step)) read();
    if (!config_.exchanges(step)) return;
    if (reads_.empty() && !config_.synchronous) return exchange_with_centre();
    if (reads_.empty()) read();
    move();
  }

 private:
  void begin(const std::vector<at::Tensor>& values) override {
    centre_.clear(), elastic_.clear();
    for (const auto& value : values) {
      centre_.push_back(at::empty_like(value));
      elastic_.push_back(at::empty_like(value));
    }
  }

  StateDict own_state() override { return {}; }

  // Waits for values that were requested, without using them.
  void settle() override {
    wait_all(reads_);
    reads_.clear();
    wait_all(writes_);
    writes_.clear();
  }

  // The servers move first, then this rank.
  void exchange_with_centre() {
    tables_.exchange(
        centre_, {.rule = kLerp, .tick = true}, [this](std::size_t i) { centre_[i].copy_(values_[i]); },
        [this](std::size_t i) {
          at::sub_out(elastic_[i], values_[i], centre_[i]);
          values_[i].sub_(elastic_[i], alpha_ / (1 - alpha_));
        });
  }

  void read() { reads_ = tables_.pull(centre_); }

  void move() {
    wait_all(writes_);
    wait_all(reads_);
    reads_.clear();
    if (config_.synchronous) group_->barrier().wait();  // no move may be applied until all ranks have read
    for (std::size_t i = 0; i < values_.size(); ++i) {
      at::sub_out(elastic_[i], values_[i], centre_[i]).mul_(alpha_);
      values_[i].sub_(elastic_[i]);
    }
    writes_ = tables_.push(elastic_, {.rule = kAdd, .tick = true});
  }

  EasgdConfig config_;
  double alpha_;
  std::vector<at::Tensor> centre_, elastic_;
  std::vector<Work> reads_, writes_;
};

const bool easgd_registered = Strategies::global().add<EasgdConfig>(
    "easgd", "ranks train independently, and each of them and a centre on servers move towards each other",
    [](const EasgdConfig& config) {
      return StrategyTraits{.parameter_servers = true,
                            .keeps_centre = !config.synchronous,
                            .inter_level = true,
                            .steps_ahead = config.synchronous ? 1 : kStepsAhead};
    },
    [](const EasgdConfig& config, const StrategyContext& context) {
      check(config);
      if (config.synchronous && config.prefetch > 0) {
        throw ConfigError("strategy.prefetch: a synchronous exchange reads the centre as it is now; remove it");
      }
      return std::make_unique<Easgd>(config, context);
    });

}  // namespace
}  // namespace phalanx
