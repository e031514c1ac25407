#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/sync/strategy_traits.h"
#include "engine/sync/synchronizer.h"
#include "framework/base/registry.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// What a strategy gets to work with.
struct Replicas {
  Replicas(CommunicatorPtr ranks, std::int64_t times = 1) : group(std::move(ranks)), backwards(times) {}  // NOLINT

  CommunicatorPtr group;   // the ranks that hold a replica each
  std::int64_t backwards;  // that add up to the gradients of one step; 0: those are complete in before_update() alone
};

/// Strategies by name. Their make() takes for granted that the traits fit the ranks: use make_synchronizer().
using Synchronizers = Registry<std::unique_ptr<Synchronizer>(const Replicas&), StrategyTraits>;

/// The strategy for these ranks. Throws ConfigError where its traits say, or itself does, that it does not fit them.
std::unique_ptr<Synchronizer> make_synchronizer(const Synchronizers::Choice& strategy, const Replicas& replicas);

}  // namespace phalanx
