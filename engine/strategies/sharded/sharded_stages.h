// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/strategies/strategy.h"
#include "engine/strategies/strategy_context.h"

namespace phalanx {

// The stages of `strategy: sharded` above the first. sharded.cc describes the first, which shards the optimizer state.

/// ZeRO stage 2: gradients are sharded too, except during backward.
std::unique_ptr<Strategy> make_sharded_gradients(const StrategyContext& context);

/// ZeRO stage 3: values are sharded too, except while a block of the model needs them. Without `reshard_after_forward`,
/// values that forward has gathered stay until backward has passed the block.
std::unique_ptr<Strategy> make_sharded_parameters(const StrategyContext& context, bool reshard_after_forward);

}  // namespace phalanx
