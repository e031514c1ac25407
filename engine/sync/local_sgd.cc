// Local SGD (Stich 2019, Local SGD Converges Fast and Communicates Little): every rank updates its own replica with its
// own gradients, and every k-th step the replicas become their mean. Post-local SGD (Lin et al. 2020, Don't Use Large
// Mini-Batches, Use Local SGD, section 3): the first `warmup_steps` are synchronous, by the mean of the gradients.
// What the optimizer remembers (momentum) can be averaged with the parameters, forgotten, or left as it is on each rank
// (Wang et al. 2020, SlowMo, section 2, compares them). After the last step the replicas are equal.
// With `compression:` an average sends how far each replica has moved since the replicas were last equal.
//
// diloco is the same with an outer optimizer (Douillard et al. 2023, DiLoCo: Distributed Low-Communication Training of
// Language Models, algorithm 1): what the replicas have moved in `every` steps of their own optimizer (the inner one,
// AdamW in the paper), in the mean, is the gradient of SGD with Nesterov momentum, whose step all of them take.
//
// Wire: 2 (P - 1) / P of the parameters' bytes per rank and k steps, and of the state's if that is averaged.
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

namespace phalanx {
namespace {

struct LocalSgdConfig {
  std::int64_t every = 8;
  std::int64_t warmup_steps = 0;
  std::string momentum = "local";
  Compressors::Choice compression{"none"};
  Compressors::Choice warmup_compression{"none"};

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
  std::int64_t warmup_steps = 0;
  Compressors::Choice compression{"none"};

  template <class V>
  void visit(V& v) {
    v("every", every, "steps of the inner optimizer between those of the outer one", config::at_least(1));
    v("outer_lr", outer_lr, "learning rate of the outer optimizer; 1: with outer_momentum 0, the mean of the replicas",
      config::above(0));
    v("outer_momentum", outer_momentum, "Nesterov momentum of the outer optimizer", config::Limits{.min = 0, .max = 1});
    v("warmup_steps", warmup_steps, "initial steps that average gradients instead", config::at_least(0));
    v("compression", compression, "compression of the parameters' changes");
  }

  LocalSgdConfig inner() const {
    return {.every = every, .warmup_steps = warmup_steps, .momentum = "local", .compression = compression};
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
    if (apart() && (step + 1 - config_.warmup_steps) % config_.every == 0) average();
  }

  bool replicas_equal() const override { return !apart(); }

  void finish() override {
    if (apart()) average();
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

  void average() {
    const at::NoGradGuard no_grad;
    average_.average();
    for (const auto& state : state_) {
      const bool average = config_.momentum == "average" || state.kind == kMovingAverage;
      if (average) average_.average(state.values);
      if (config_.momentum == "reset" && is_momentum(state.kind)) state.values.zero_();
    }
    apart_.zero_();
  }

  LocalSgdConfig config_;
  CommunicatorPtr group_;
  GradientGroup warm_up_;
  ParameterAverage average_;
  std::vector<Slice> slices_;
  std::vector<StateTensor> state_;                // of the optimizer
  at::Tensor apart_ = at::zeros({1}, at::kLong);  // 1: the replicas may differ
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
      return std::make_unique<LocalSgd>(
          config.inner(), context, ParameterAverage::Outer{.lr = config.outer_lr, .momentum = config.outer_momentum});
    });

}  // namespace
}  // namespace phalanx
