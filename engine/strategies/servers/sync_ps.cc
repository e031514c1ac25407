// SPDX-License-Identifier: Apache-2.0
// Synchronous SGD through parameter servers: in every step the servers sum the gradients of all ranks, which read the
// sum and divide it by the number of ranks. The result is the same as with all_reduce, except for the order of
// additions, which is the order of arrival. Each step's sum starts from zero (rule sum_of_clock). Two tables are used
// in turn: a rank that has finished a step adds to the next sum while others still read the current one.
// With `server_optimizer` the servers keep the parameters instead. Their optimizer takes a step with the mean of all
// ranks' gradients, once per step, and the ranks read the parameters (pushed_gradients.h).
// Wire: the gradients' bytes to the servers and back, per rank and step; a server for P ranks receives and sends P
// times its share.
#include <ATen/core/grad_mode.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/servers/bucket_tables.h"
#include "engine/strategies/servers/pushed_gradients.h"
#include "engine/strategies/servers/server_optimizer.h"
#include "engine/strategies/strategies.h"

namespace phalanx {
namespace {

class SyncPs final : public GradientStrategy {
 public:
  explicit SyncPs(const StrategyContext& context)
      : group_(context.group),
        weight_(context.weight),
        service_(context),
        sums_{BucketTables(service_, contract("even")), BucketTables(service_, contract("odd"))} {
    service_.on_change_of_servers([this] {
      auto former = service_.follow_servers();
      for (auto& sum : sums_) sum.follow();
      service_.leave(std::move(former));
    });
  }

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    auto slices = broadcast_all(parameters, *group_);
    gradients_.clear();
    for (const auto& bucket : parameters.buckets()) gradients_.push_back(bucket.gradients);
    for (auto& sum : sums_) sum.attach(parameters);
    return slices;
  }

  void before_update(std::int64_t step) override {
    const at::NoGradGuard no_grad;
    // A replay that begins at a checkpoint begins with the sums that the recorded rank used there.
    turn_ = turn_ ? 1 - *turn_ : static_cast<std::size_t>(step % 2);
    sums_[*turn_].exchange(
        gradients_, {.rule = 0, .scale = weight_, .tick = true}, [](std::size_t) {},
        [this](std::size_t bucket) { gradients_[bucket].div_(group_->size()); });
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

  Metrics metrics() const override { return sums_[0].metrics(); }

 private:
  static BucketTables::Contract contract(const char* name) {
    return {.name = name, .rules = {"sum_of_clock"}, .staleness = 0};
  }

  CommunicatorPtr group_;
  double weight_;  // of this rank's gradients
  ParameterService service_;
  std::array<BucketTables, 2> sums_;  // for even and odd steps
  std::optional<std::size_t> turn_;   // of the last step
  std::vector<at::Tensor> gradients_;
};

struct SyncPsConfig {
  ServerOptimizer server_optimizer;

  template <class V>
  void visit(V& v) {
    v("server_optimizer", server_optimizer, "optimizer of the servers, which then keep the parameters");
  }
};

// If the servers apply the gradients, no other strategy can reduce them.
StrategyTraits sync_ps_traits(const SyncPsConfig& config) {
  const bool servers_update = config.server_optimizer.any();
  return {.reduces_gradients = !servers_update,
          .parameter_servers = true,
          .servers_update = servers_update,
          .intra_level = !servers_update,
          .inter_level = true};
}

const bool sync_ps_registered = Strategies::global().add<SyncPsConfig>(
    "sync_ps", "synchronous: parameter servers average the gradients", sync_ps_traits,
    [](const SyncPsConfig& config, const StrategyContext& context) -> std::unique_ptr<Strategy> {
      if (!config.server_optimizer.any()) return std::make_unique<SyncPs>(context);
      return std::make_unique<PushedGradients>(
          PushedGradients::Options{.rule = config.server_optimizer.rule(0, context.group->size()),
                                   .learning_rate = config.server_optimizer.learning_rate(),
                                   .staleness = 0,
                                   .synchronous = true},
          context);
    });

}  // namespace
}  // namespace phalanx
