// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/sync/strategy_traits.h"
#include "engine/sync/sync_context.h"
#include "engine/sync/synchronizer.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Strategies by name. Their make() assumes that the traits fit the ranks, so call make_synchronizer() instead.
using Synchronizers = Registry<std::unique_ptr<Synchronizer>(const SyncContext&), StrategyTraits>;

/// Creates the strategy for these ranks. Throws ConfigError if its traits, or the strategy itself, do not fit them.
std::unique_ptr<Synchronizer> make_synchronizer(const Synchronizers::Choice& strategy, const SyncContext& context);

}  // namespace phalanx
