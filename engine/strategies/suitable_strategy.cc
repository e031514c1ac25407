// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/suitable_strategy.h"

#include <algorithm>

#include "framework/base/config/config.h"
#include "framework/base/config/no_fields.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

// Has only the traits that all strategies it may select have in common.
const bool suitable_strategy_registered =
    Strategies::global().add<NoFields>("auto", "the exact strategy that suits the placement of the ranks",
                                       StrategyTraits{.reduces_gradients = true, .virtual_shards = true},
                                       [](const NoFields&, const StrategyContext& context) {
                                         return make_strategy(suitable_strategy(placement_of(*context.group)), context);
                                       });

}  // namespace

RankPlacement placement_of(Communicator& group) {
  const MeasuredInputs measured;
  const auto nodes = all_gather_text(numa_key(), group);
  return {.ranks = group.size(),
          .shares_memory = group.shares_memory(),
          .one_numa_node = nodes[0] != kUnbound && std::ranges::count(nodes, nodes[0]) == group.size()};
}

Strategies::Choice suitable_strategy(const RankPlacement& placement) {
  if (placement.ranks == 1) return Strategies::Choice("single");
  if (!placement.shares_memory) return Strategies::Choice("overlapped");
  if (!placement.one_numa_node) return Strategies::Choice("all_reduce");
  return config::load_as<Strategies::Choice>("strategy", "{name: sharded, one_copy: true}", "strategy: auto");
}

}  // namespace phalanx
