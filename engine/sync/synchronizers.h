// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/sync/strategy_traits.h"
#include "engine/sync/sync_context.h"
#include "engine/sync/synchronizer.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Strategies by name. Their make() takes for granted that the traits fit the ranks: use make_synchronizer().
using Synchronizers = Registry<std::unique_ptr<Synchronizer>(const SyncContext&), StrategyTraits>;

/// The strategy for these ranks. Throws ConfigError where its traits say, or itself does, that it does not fit them.
std::unique_ptr<Synchronizer> make_synchronizer(const Synchronizers::Choice& strategy, const SyncContext& context);

}  // namespace phalanx
