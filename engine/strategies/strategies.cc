// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/strategies.h"

#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/plain_memory.h"

namespace phalanx {
namespace {

bool implements_what_it_promises(const StrategyTraits& traits, const StrategyExtensions& extensions) {
  return traits.servers_update == (extensions.updates_on_servers != nullptr) &&
         traits.frees_gradients == (extensions.frees_gradients != nullptr) &&
         traits.shards_values == (extensions.shards_parameters != nullptr) &&
         traits.keeps_centre == (extensions.keeps_centre != nullptr);
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(const Strategies::Choice& strategy, const StrategyContext& context) {
  const auto traits = strategy.traits();
  if (traits.one_rank && context.group->size() != 1) {
    throw ConfigError("strategy " + strategy.selected() + " trains on one rank, but there are " +
                      std::to_string(context.group->size()) + "; use strategy: all_reduce");
  }
  if (traits.shared_memory) require_shared_memory(*context.group);
  auto made = strategy.make(context);
  if (!implements_what_it_promises(traits, made->extensions())) {
    throw std::logic_error("strategy " + strategy.selected() + ": its optional interfaces do not match its traits");
  }
  return made;
}

}  // namespace phalanx
