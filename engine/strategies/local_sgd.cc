// SPDX-License-Identifier: Apache-2.0
// Local SGD (Stich 2019, Local SGD Converges Fast and Communicates Little): every rank updates its own replica with its
// own gradients, and every k-th step the replicas become their mean. In post-local SGD (Lin et al. 2020, Don't Use
// Large Mini-Batches, Use Local SGD, section 3), the first `warmup_steps` are synchronous: they use the mean of the
// gradients. The optimizer's momentum can be averaged with the parameters, reset, or left as it is on each rank (Wang
// et al. 2020, SlowMo, section 2, compares these). After the last step the replicas are equal.
// With `compression:` an average sends how far each replica has moved since the replicas were last equal.
//
// diloco adds an outer optimizer (Douillard et al. 2023, DiLoCo: Distributed Low-Communication Training of Language
// Models, algorithm 1). The mean movement of the replicas in `every` steps of the inner optimizer (AdamW in the paper)
// is the gradient for SGD with Nesterov momentum, and all replicas take its step. With `fragments` F, every F-th bucket
// belongs to the same fragment, and each fragment is exchanged at its own time within the `every` steps, so that a link
// carries one fragment at a time. This is Streaming DiLoCo with the strided pattern (Douillard et al. 2025, Streaming
// DiLoCo with Overlapping Communication, arXiv:2501.18512, section 2.2). Compression int4 is its section 2.4 with even
// quantization steps. With `overlap` tau, as in its section 2.3, the exchange that is launched after step t is merged
// after step t + tau, while the ranks go on computing. A rank then keeps the share alpha (`mix`) of its current values:
// x = alpha x + (1 - alpha) y, where y are the values to which the outer step leads.
//
// Wire: 2 (P - 1) / P of the parameters' bytes per rank and k steps, and as much of the optimizer state if it is
// averaged. At most 1 / F of that in a single step.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/strategies/gradient_group.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/parameter_average.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct LocalSgdConfig {
  std::int64_t every = 8;
  std::int64_t warmup_steps = 0;
  std::string momentum = "local";
  Compressors::Choice compression{"none"};
  Compressors::Choice warmup_compression{"none"};
  std::int64_t fragments = 1;  // the fields from here on are set for diloco only
  std::int64_t overlap = 0;
  double mix = 0;

  template <class V>
  void visit(V& v) {
    v("every", every, "steps between averages of the parameters", config::at_least(1));
    v("warmup_steps", warmup_steps, "initial steps that average gradients instead", config::at_least(0));
    v("momentum", momentum,
      "optimizer state when parameters are averaged; local: kept, average: averaged too, reset: momentum set to zero",
      config::one_of({"local", "average", "reset"}));
    v("compression", compression, "compression of the parameters' changes, from the first average on");
    v("warmup_compression", warmup_compression, "compression of the gradients of the warm-up");
  }
};

struct DilocoConfig {
  std::int64_t every = 50;
  double outer_lr = 0.7;
  double outer_momentum = 0.9;
  std::int64_t fragments = 1;
  std::int64_t overlap = 0;
  double mix = 0.5;
  std::int64_t warmup_steps = 0;
  Compressors::Choice compression{"none"};

  template <class V>
  void visit(V& v) {
    v("every", every, "steps of the inner optimizer between those of the outer one", config::at_least(1));
    v("outer_lr", outer_lr, "learning rate of the outer optimizer; 1: with outer_momentum 0, the mean of the replicas",
      config::above(0));
    v("outer_momentum", outer_momentum, "Nesterov momentum of the outer optimizer", config::Limits{.min = 0, .max = 1});
    v("fragments", fragments,
      "parts of the parameters that take their outer steps in turn, evenly spread over the `every` steps; at most "
      "`every`, and as many as there are buckets",
      config::at_least(1));
    v("overlap", overlap,
      "steps that ranks compute while an exchange is under way, before its result is merged; less than `every`",
      config::at_least(0));
    v("mix", mix, "with overlap: share of its own values that a rank keeps when a result is merged",
      config::between(0, 1));
    v("warmup_steps", warmup_steps, "initial steps that average gradients instead", config::at_least(0));
    v("compression", compression, "compression of the parameters' changes");
  }

  LocalSgdConfig inner() const {
    return {.every = every,
            .warmup_steps = warmup_steps,
            .momentum = "local",
            .compression = compression,
            .fragments = fragments,
            .overlap = overlap,
            .mix = mix};
  }
};

// Resetting clears the direction of the last steps, but keeps second moments, by which optimizers scale their steps.
bool is_momentum(const std::string& kind) { return kind == "momentum" || kind == "exp_avg"; }

class LocalSgd final : public ReplicatedStrategy {
 public:
  LocalSgd(const LocalSgdConfig& config, const StrategyContext& context,
           std::optional<ParameterAverage::Outer> outer = {})
      : config_(config),
        group_(context.group),
        warm_up_(context.group, config.warmup_compression, context.weight),
        average_(context.group, config.compression, context.weight, outer),
        under_way_(at::zeros({config.fragments}, at::kLong)) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    warm_up_.attach(parameters);
    average_.attach(parameters);
    const auto buckets = static_cast<std::int64_t>(average_.buckets());
    if (buckets > 0 && config_.fragments > buckets) {  // between hosts, a rank may have no bucket
      throw ConfigError("strategy.fragments: the " + std::to_string(buckets) + " buckets cannot be divided into " +
                        std::to_string(config_.fragments) + " fragments; lower framework.bucket_bytes");
    }
    state_.clear();
    return slices_;
  }

  void attach_state(const std::vector<StateTensor>& state) override { state_ = state; }

  void reset() override {
    average_.reset();
    under_way_.zero_();
    equal() = -1;
  }

  void before_update(std::int64_t step) override {
    warming_up_ = step < config_.warmup_steps;
    if (!warming_up_) {
      if (!diverged()) average_.reset();  // also at the end of the warm-up
      return;
    }
    std::vector<Work> works;
    for (auto& slice : slices_) works.push_back(warm_up_.all_reduce_mean(slice.gradients));
    wait_all(works);
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {warming_up_ ? group_ : nullptr}; }

  void after_update(std::int64_t step) override {
    diverged_.fill_(step >= config_.warmup_steps ? 1 : 0);
    equal() = -1;
    if (!diverged()) return;
    const std::int64_t steps = step + 1 - config_.warmup_steps;
    for (std::int64_t fragment = 0; fragment < config_.fragments; ++fragment) {
      const std::int64_t turn = (fragment + 1) * config_.every / config_.fragments;  // 1 to `every`
      if (under_way(fragment) != 0 && (steps - config_.overlap) % config_.every == turn % config_.every)
        merge(fragment);
      if (steps % config_.every != turn % config_.every) continue;
      launch(fragment);
      if (config_.overlap == 0) merge(fragment);
    }
  }

  bool replicas_equal() const override { return !diverged(); }

  void finish() override {
    const std::int64_t already_equal = equal();
    for (std::int64_t fragment = 0; diverged() && fragment < config_.fragments; ++fragment) {
      if (fragment == already_equal) continue;
      if (under_way(fragment) != 0) merge(fragment);
      launch(fragment);
      merge(fragment, 0);
    }
    diverged_.zero_();
  }

  StateDict state() override {
    StateDict all = average_.state();
    append(all, "warmup/", warm_up_.state());
    all.push_back({"apart", diverged_, true});
    all.push_back({"equal", equal_, true});
    all.push_back({"under_way", under_way_, true});
    return all;
  }

  Metrics metrics() const override {
    if (!warm_up_.compresses() && !average_.compresses()) return {};
    Traffic all = warm_up_.traffic();
    return metrics_of(all += average_.traffic());
  }

 private:
  bool diverged() const { return *diverged_.const_data_ptr<std::int64_t>() != 0; }

  std::int64_t& equal() { return *equal_.mutable_data_ptr<std::int64_t>(); }
  std::int64_t& under_way(std::int64_t fragment) { return under_way_.mutable_data_ptr<std::int64_t>()[fragment]; }

  void launch(std::int64_t fragment) {
    average_.launch(static_cast<std::size_t>(fragment), static_cast<std::size_t>(config_.fragments));
    under_way(fragment) = 1;
  }

  void merge(std::int64_t fragment) { merge(fragment, config_.overlap > 0 ? config_.mix : 0); }

  // Merges a fragment. The optimizer state is handled together with the last one. With several fragments, the replicas
  // still differ in the others. If ranks keep a share of their current values, they differ in the merged one too.
  void merge(std::int64_t fragment, double own) {
    const at::NoGradGuard no_grad;
    average_.merge(static_cast<std::size_t>(fragment), static_cast<std::size_t>(config_.fragments), own);
    under_way(fragment) = 0;
    if (own == 0) equal() = fragment;
    if (fragment + 1 < config_.fragments) return;
    for (const auto& state : state_) {
      const bool average = config_.momentum == "average" || state.kind == kMovingAverage;
      if (average) average_.average(state.values);
      if (config_.momentum == "reset" && is_momentum(state.kind)) state.values.zero_();
    }
    if (config_.fragments == 1 && own == 0) diverged_.zero_();
  }

  LocalSgdConfig config_;
  CommunicatorPtr group_;
  GradientGroup warm_up_;
  ParameterAverage average_;
  std::vector<Slice> slices_;
  bool warming_up_ = false;
  std::vector<StateTensor> state_;                   // of the optimizer
  at::Tensor diverged_ = at::zeros({1}, at::kLong);  // 1: the replicas may differ
  at::Tensor equal_ = at::full({1}, -1, at::kLong);  // the fragment that the last step made equal; -1 if none
  at::Tensor under_way_;                             // [fragments] 1: launched but not merged yet
};

StrategyTraits local_sgd_traits(const LocalSgdConfig& config) {
  return {.remembers_gradients = config.warmup_steps > 0 && compresses(config.warmup_compression), .inter_level = true};
}

const bool local_sgd_registered = Strategies::global().add<LocalSgdConfig>(
    "local_sgd", "ranks train independently and average their parameters every k-th step", local_sgd_traits,
    [](const LocalSgdConfig& config, const StrategyContext& context) {
      return std::make_unique<LocalSgd>(config, context);
    });

const bool diloco_registered = Strategies::global().add<DilocoConfig>(
    "diloco", "as local_sgd, but the mean movement of the replicas is the gradient of an outer optimizer",
    StrategyTraits{.inter_level = true}, [](const DilocoConfig& config, const StrategyContext& context) {
      if (config.fragments > config.every) {
        throw ConfigError("strategy.fragments: " + std::to_string(config.fragments) + " cannot take turns within " +
                          std::to_string(config.every) + " steps (strategy.every)");
      }
      if (config.overlap >= config.every) {
        throw ConfigError("strategy.overlap: an exchange that is " + std::to_string(config.overlap) +
                          " steps under way does not end before the next one begins; use less than strategy.every: " +
                          std::to_string(config.every));
      }
      return std::make_unique<LocalSgd>(
          config.inner(), context,
          ParameterAverage::Outer{
              .lr = config.outer_lr, .momentum = config.outer_momentum, .late = config.overlap > 0});
    });

}  // namespace
}  // namespace phalanx
