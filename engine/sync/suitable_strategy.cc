// SPDX-License-Identifier: Apache-2.0
#include "engine/sync/suitable_strategy.h"

#include <algorithm>

#include "framework/base/config/config.h"
#include "framework/base/config/no_fields.h"
#include "framework/comm/locality.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

// Has only the traits that all strategies it may select have in common.
const bool suitable_strategy_registered = Synchronizers::global().add<NoFields>(
    "auto", "the exact strategy that suits the placement of the ranks",
    StrategyTraits{.reduces_gradients = true, .virtual_shards = true}, [](const NoFields&, const SyncContext& context) {
      return make_synchronizer(suitable_strategy(placement_of(*context.group)), context);
    });

}  // namespace

RankPlacement placement_of(Communicator& group) {
  const auto nodes = all_gather_text(numa_key(), group);
  return {.ranks = group.size(),
          .shares_memory = group.shares_memory(),
          .one_numa_node = nodes[0] != kUnbound && std::ranges::count(nodes, nodes[0]) == group.size()};
}

Synchronizers::Choice suitable_strategy(const RankPlacement& placement) {
  if (placement.ranks == 1) return Synchronizers::Choice("single");
  if (!placement.shares_memory) return Synchronizers::Choice("overlapped");
  if (!placement.one_numa_node) return Synchronizers::Choice("all_reduce");
  return config::load_as<Synchronizers::Choice>("strategy", "{name: sharded, one_copy: true}", "strategy: auto");
}

}  // namespace phalanx
