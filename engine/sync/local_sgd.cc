// Local SGD (Stich 2019, Local SGD Converges Fast and Communicates Little): every rank updates its own replica with its
// own gradients, and every k-th step the replicas become their mean. Post-local SGD (Lin et al. 2020, Don't Use Large
// Mini-Batches, Use Local SGD, section 3): the first `warmup_steps` are synchronous, by the mean of the gradients.
// What the optimizer remembers (momentum) can be averaged with the parameters, forgotten, or left as it is on each rank
// (Wang et al. 2020, SlowMo, section 2, compares them). After the last step the replicas are equal.
// With `compression:` an average sends how far each replica has moved since the replicas were last equal.
//
// diloco is the same with an outer optimizer (Douillard et al. 2023, DiLoCo: Distributed Low-Communication Training of
// Language Models, algorithm 1): what the replicas have moved in `every` steps of their own optimizer (the inner one,
// AdamW in the paper), in the mean, is the gradient of SGD with Nesterov momentum, whose step all of them take. With
// `fragments` F, every F-th bucket is a fragment, and each of them is exchanged at a time of its own within the `every`
// steps, so that a link has to carry a fragment at a time (Douillard et al. 2025, Streaming DiLoCo with Overlapping
// Communication, section 2.2, with the strided pattern; compression int8 is its section 2.4 with 8 bits).
//
// Wire: 2 (P - 1) / P of the parameters' bytes per rank and k steps, and of the state's if that is averaged. At most 1
// / F of that in one step.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/initial_values.h"
#include "engine/sync/parameter_average.h"
#include "engine/sync/replicated_synchronizer.h"
#include "engine/sync/synchronizers.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct LocalSgdConfig {
  std::int64_t every = 8;
  std::int64_t warmup_steps = 0;
  std::string momentum = "local";
  Compressors::Choice compression{"none"};
  Compressors::Choice warmup_compression{"none"};
  std::int64_t fragments = 1;  // of diloco

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
    v("warmup_steps", warmup_steps, "initial steps that average gradients instead", config::at_least(0));
    v("compression", compression, "compression of the parameters' changes");
  }

  LocalSgdConfig inner() const {
    return {.every = every,
            .warmup_steps = warmup_steps,
            .momentum = "local",
            .compression = compression,
            .fragments = fragments};
  }
};

// Optimizers by their own measure of sizes (second moments) keep that, and forget where they were heading.
bool is_momentum(const std::string& kind) { return kind == "momentum" || kind == "exp_avg"; }

class LocalSgd final : public ReplicatedSynchronizer {
 public:
  LocalSgd(const LocalSgdConfig& config, const SyncContext& context, std::optional<ParameterAverage::Outer> outer = {})
      : config_(config),
        group_(context.group),
        warm_up_(context.group, config.warmup_compression, context.weight),
        average_(context.group, config.compression, context.weight, outer) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    warm_up_.attach(parameters);
    average_.attach(parameters);
    const auto buckets = static_cast<std::int64_t>(average_.buckets());
    if (buckets > 0 && config_.fragments > buckets) {  // between hosts, a rank may have none
      throw ConfigError("strategy.fragments: the " + std::to_string(buckets) + " buckets do not make " +
                        std::to_string(config_.fragments) + " fragments; lower framework.bucket_bytes");
    }
    state_.clear();
    return slices_;
  }

  void attach_state(const std::vector<StateTensor>& state) override { state_ = state; }

  void begin_anew() override { average_.begin_anew(); }

  void before_update(std::int64_t step) override {
    if (step >= config_.warmup_steps) {
      if (!apart()) average_.begin_anew();  // after the warm-up, too
      return;
    }
    std::vector<Work> works;
    for (auto& slice : slices_) works.push_back(warm_up_.all_reduce_mean(slice.gradients));
    wait_all(works);
  }

  void after_update(std::int64_t step) override {
    apart_.fill_(step >= config_.warmup_steps ? 1 : 0);
    equal_ = -1;
    if (!apart()) return;
    const std::int64_t steps = step + 1 - config_.warmup_steps;
    for (std::int64_t fragment = 0; fragment < config_.fragments; ++fragment) {
      const std::int64_t turn = (fragment + 1) * config_.every / config_.fragments;  // 1 to `every`
      if (steps % config_.every == turn % config_.every) average(fragment);
    }
  }

  bool replicas_equal() const override { return !apart(); }

  void finish() override {
    const std::int64_t equal = equal_;
    for (std::int64_t fragment = 0; apart() && fragment < config_.fragments; ++fragment) {
      if (fragment != equal) average(fragment);
    }
    apart_.zero_();
  }

  StateDict state() override {
    StateDict all = average_.state();
    append(all, "warmup/", warm_up_.state());
    all.push_back({"apart", apart_, true});
    return all;
  }

  Figures figures() const override {
    if (!warm_up_.compresses() && !average_.compresses()) return {};
    Traffic all = warm_up_.traffic();
    return figures_of(all += average_.traffic());
  }

 private:
  bool apart() const { return *apart_.const_data_ptr<std::int64_t>() != 0; }

  // With the last fragment goes what the optimizer remembers. While some are equal, others are apart.
  void average(std::int64_t fragment) {
    const at::NoGradGuard no_grad;
    average_.average(static_cast<std::size_t>(fragment), static_cast<std::size_t>(config_.fragments));
    equal_ = fragment;
    if (fragment + 1 < config_.fragments) return;
    for (const auto& state : state_) {
      const bool average = config_.momentum == "average" || state.kind == kMovingAverage;
      if (average) average_.average(state.values);
      if (config_.momentum == "reset" && is_momentum(state.kind)) state.values.zero_();
    }
    if (config_.fragments == 1) apart_.zero_();
  }

  LocalSgdConfig config_;
  CommunicatorPtr group_;
  GradientGroup warm_up_;
  ParameterAverage average_;
  std::vector<Slice> slices_;
  std::vector<StateTensor> state_;                // of the optimizer
  at::Tensor apart_ = at::zeros({1}, at::kLong);  // 1: the replicas may differ
  std::int64_t equal_ = -1;                       // the fragment whose turn the last step was; -1: none
};

StrategyTraits traits(const LocalSgdConfig& config) {
  return {.remembers_gradients = config.warmup_steps > 0 && compresses(config.warmup_compression), .inter_level = true};
}

const bool registered = Synchronizers::global().add<LocalSgdConfig>(
    "local_sgd", "ranks train independently and average their parameters every k-th step", traits,
    [](const LocalSgdConfig& config, const SyncContext& context) {
      return std::make_unique<LocalSgd>(config, context);
    });

const bool diloco_registered = Synchronizers::global().add<DilocoConfig>(
    "diloco", "as local_sgd, but the mean movement of the replicas is the gradient of an outer optimizer",
    StrategyTraits{.inter_level = true}, [](const DilocoConfig& config, const SyncContext& context) {
      if (config.fragments > config.every) {
        throw ConfigError("strategy.fragments: " + std::to_string(config.fragments) + " cannot take turns within " +
                          std::to_string(config.every) + " steps (strategy.every)");
      }
      return std::make_unique<LocalSgd>(
          config.inner(), context, ParameterAverage::Outer{.lr = config.outer_lr, .momentum = config.outer_momentum});
    });

}  // namespace
}  // namespace phalanx
