// SPDX-License-Identifier: Apache-2.0
// A single process, which has no peers.
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Single final : public GradientStrategy {
 public:
  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    std::vector<Slice> slices;
    for (const auto& bucket : parameters.buckets()) slices.push_back(whole(bucket));
    return slices;
  }

  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }
};

const bool single_registered = Strategies::global().add<NoFields>(
    "single", "one rank, no communication",
    StrategyTraits{.reduces_gradients = true, .one_rank = true, .in_graph = true, .traffic = StepTraffic::kNone},
    [](const NoFields&, const StrategyContext&) { return std::make_unique<Single>(); });

}  // namespace
}  // namespace phalanx
