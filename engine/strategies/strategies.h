// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/strategies/strategy.h"
#include "engine/strategies/strategy_context.h"
#include "engine/strategies/strategy_traits.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Strategies by name. Their make() assumes that the traits fit the ranks, so call make_strategy() instead.
using Strategies = Registry<std::unique_ptr<Strategy>(const StrategyContext&), StrategyTraits>;

/// Creates the strategy for these ranks. Throws ConfigError if its traits, or the strategy itself, do not fit them, and
/// std::logic_error if it does not implement the optional interfaces that belong to its traits.
std::unique_ptr<Strategy> make_strategy(const Strategies::Choice& strategy, const StrategyContext& context);

}  // namespace phalanx
