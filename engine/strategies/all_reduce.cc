// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism: the mean of all ranks' gradients after backward, one all-reduce per bucket. Replicas
// start equal by a broadcast from rank 0 and stay bitwise equal, because all-reduce gives every rank the same bits.
// Wire: 2 (P - 1) / P of the gradients' bytes per rank and step if the backend moves the minimum; with `compression:`,
// the bytes that the compression sends (framework/collectives/compression).
#include "engine/strategies/gradient_group.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"

namespace phalanx {
namespace {

class AllReduce final : public GradientStrategy {
 public:
  AllReduce(const GradientConfig& config, const StrategyContext& context)
      : group_(context.group), gradients_(context.group, config.compression, context.weight) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    gradients_.attach(parameters);
    return slices_;
  }

  void before_update(std::int64_t) override {
    std::vector<Work> works;
    works.reserve(slices_.size());
    for (auto& slice : slices_) works.push_back(gradients_.all_reduce_mean(slice.gradients));
    wait_all(works);
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

  StateDict state() override { return gradients_.state(); }

  Metrics metrics() const override { return gradients_.metrics(); }

 private:
  CommunicatorPtr group_;
  GradientGroup gradients_;
  std::vector<Slice> slices_;
};

StrategyTraits all_reduce_traits(const GradientConfig& config) {
  const bool compresses = phalanx::compresses(config.compression);
  return {.reduces_gradients = true,
          .remembers_gradients = compresses,
          .intra_level = true,
          .inter_level = true,
          .virtual_shards = !compresses,
          .in_graph = !compresses,
          .traffic = compresses ? StepTraffic::kOther : StepTraffic::kAllReduce};
}

const bool all_reduce_registered = Strategies::global().add<GradientConfig>(
    "all_reduce", "synchronous: gradients are all-reduced after backward", all_reduce_traits,
    [](const GradientConfig& config, const StrategyContext& context) {
      return std::make_unique<AllReduce>(config, context);
    });

}  // namespace
}  // namespace phalanx
