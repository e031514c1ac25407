// SPDX-License-Identifier: Apache-2.0
// Asynchronous SGD through parameter servers. Each rank trains its own replica x with its own optimizer. It sends the
// accumulated change of x to the servers, which add it to the centre c, and continues from c.
//
//   downpour  every `every` steps (Dean et al. 2012, Large Scale Distributed Deep Networks, section 4.1, with
//             n_push = n_fetch): d = x - base is added to c, then x = base = c. No rank waits for another.
//   ssp       the same in every step, but a rank that is more than `staleness` steps ahead of the slowest waits for it
//             (Ho et al. 2013, More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server,
//             section 3). With staleness 0, all updates of a step are applied before the next one begins.
//
// With `prefetch`, c is requested some steps before it is used. x then becomes c plus the changes that x has made since
// its last push, which c does not contain yet.
// With `server_optimizer`, the ranks have no optimizer. A rank sends the mean of its gradients since it last read c,
// and the servers' optimizer takes a step with it (Dean et al. use Adagrad there); see pushed_gradients.h.
// Wire: the parameters' bytes to the servers and back, per rank and exchange.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/strategies/servers/pushed_gradients.h"
#include "engine/strategies/servers/server_optimizer.h"
#include "engine/strategies/servers/server_strategy.h"
#include "engine/strategies/servers/update_schedule.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

std::string add_rule(double staleness_power) {
  return format_text("{name: add, staleness_power: %.17g}", staleness_power);
}

class Downpour final : public ServerStrategy {
 public:
  Downpour(const UpdateSchedule& schedule, const StrategyContext& context, std::int64_t staleness,
           double staleness_power)
      : ServerStrategy(context, {.name = "centre", .rules = {add_rule(staleness_power)}, .staleness = staleness}),
        schedule_(schedule),
        counts_staleness_(staleness_power > 0) {}

  StrategyExtensions extensions() override { return {.keeps_centre = this}; }

  void after_update(std::int64_t step) override {
    const at::NoGradGuard no_grad;
    if (schedule_.prefetches(step)) prefetch_values();
    if (!schedule_.exchanges(step)) return;
    if (reads_.empty()) {
      exchange();
    } else {
      integrate();
      push();
    }
  }

 private:
  void begin(const std::vector<at::Tensor>& values) override {
    base_.clear(), moved_.clear(), read_.clear();
    for (const auto& value : values) {
      base_.push_back(value.clone());
      moved_.push_back(at::empty_like(value));
      read_.push_back(at::empty_like(value));
    }
  }

  void servers_were_set() override {
    if (counts_staleness_) read_what_was_set();
  }

  StateDict own_state() override {
    StateDict all;
    for (std::size_t i = 0; i < base_.size(); ++i) all.push_back({"base/" + std::to_string(i), base_[i]});
    return all;
  }

  void settle() override {
    if (!reads_.empty()) integrate();
    push();
    end_writes();
  }

  void end_writes() {  // for the changes measured last
    wait_all(writes_);
    writes_.clear();
  }

  void measure(std::size_t bucket) { at::sub_out(moved_[bucket], values_[bucket], base_[bucket]); }

  void exchange() {
    end_writes();
    tables_.exchange(
        moved_, {.rule = 0, .tick = true}, [this](std::size_t i) { measure(i); },
        [this](std::size_t i) {
          values_[i].copy_(moved_[i]);
          base_[i].copy_(moved_[i]);
        });
  }

  void push() {
    end_writes();
    for (std::size_t i = 0; i < values_.size(); ++i) measure(i);
    writes_ = tables_.push(moved_, {.rule = 0, .tick = true});
    for (std::size_t i = 0; i < values_.size(); ++i) base_[i].copy_(values_[i]);
  }

  // Nothing is pushed until the values are used, so the change of x since the request is still x - base.
  void prefetch_values() { reads_ = tables_.pull(read_); }

  void integrate() {
    wait_all(reads_);
    reads_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      at::sub_out(moved_[i], values_[i], base_[i]);
      base_[i].copy_(read_[i]);
      at::add_out(values_[i], read_[i], moved_[i]);
    }
  }

  UpdateSchedule schedule_;
  bool counts_staleness_;
  std::vector<at::Tensor> base_;   // the centre from which this rank's changes are measured
  std::vector<at::Tensor> moved_;  // x - base
  std::vector<at::Tensor> read_;   // requested ahead
  std::vector<Work> reads_, writes_;
};

constexpr const char* kStalenessPower =
    "p: an update that comes t updates late is divided by (1 + t)^p; with a server_optimizer, its learning rate is";
constexpr const char* kServerOptimizer = "optimizer of the servers, to which ranks send gradients instead of updates";

struct DownpourConfig : UpdateSchedule {
  double staleness_power = 0;
  ServerOptimizer server_optimizer;

  template <class V>
  void visit(V& v) {
    UpdateSchedule::visit(v);
    v("staleness_power", staleness_power, kStalenessPower, config::at_least(0));
    v("server_optimizer", server_optimizer, kServerOptimizer);
  }
};

struct SspConfig {
  std::int64_t staleness = 3;
  std::int64_t every = 1;
  double staleness_power = 0;
  ServerOptimizer server_optimizer;

  template <class V>
  void visit(V& v) {
    v("staleness", staleness, "exchanges that a rank may be ahead of the slowest", config::at_least(0));
    v("every", every, "steps between exchanges with the servers", config::at_least(1));
    v("staleness_power", staleness_power, kStalenessPower, config::at_least(0));
    v("server_optimizer", server_optimizer, kServerOptimizer);
  }
};

template <class Config>
std::unique_ptr<Strategy> push_gradients(const Config& config, std::int64_t staleness, const StrategyContext& context) {
  return std::make_unique<PushedGradients>(
      PushedGradients::Options{.rule = config.server_optimizer.rule(config.staleness_power, 1),
                               .learning_rate = config.server_optimizer.learning_rate(),
                               .every = config.every,
                               .staleness = staleness},
      context);
}

void check_downpour(const DownpourConfig& config) {
  check(config);
  if (!config.server_optimizer.any() || (config.delay == 0 && config.prefetch == 0)) return;
  throw ConfigError(std::string("strategy.") + (config.delay > 0 ? "delay" : "prefetch") +
                    ": with a server_optimizer a rank has no updates of its own between exchanges; remove it");
}

const bool downpour = Strategies::global().add<DownpourConfig>(
    "downpour", "asynchronous: ranks add their updates to parameters on servers, and do not wait for each other",
    [](const DownpourConfig& config) {
      return StrategyTraits{.parameter_servers = true,
                            .servers_update = config.server_optimizer.any(),
                            .keeps_centre = true,
                            .inter_level = true,
                            .steps_ahead = kStepsAhead};
    },
    [](const DownpourConfig& config, const StrategyContext& context) -> std::unique_ptr<Strategy> {
      check_downpour(config);
      if (config.server_optimizer.any()) return push_gradients(config, ps::kAsynchronous, context);
      return std::make_unique<Downpour>(config, context, ps::kAsynchronous, config.staleness_power);
    });

const bool ssp = Strategies::global().add<SspConfig>(
    "ssp", "as downpour, but no rank gets more than a few steps ahead of the slowest",
    [](const SspConfig& config) {
      return StrategyTraits{.parameter_servers = true,
                            .servers_update = config.server_optimizer.any(),
                            .keeps_centre = true,
                            .inter_level = true,
                            .steps_ahead = config.every * (config.staleness + 1)};
    },
    [](const SspConfig& config, const StrategyContext& context) -> std::unique_ptr<Strategy> {
      if (config.server_optimizer.any()) return push_gradients(config, config.staleness, context);
      return std::make_unique<Downpour>(UpdateSchedule{.every = config.every}, context, config.staleness,
                                        config.staleness_power);
    });

}  // namespace
}  // namespace phalanx
