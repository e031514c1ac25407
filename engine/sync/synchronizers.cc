// SPDX-License-Identifier: Apache-2.0
#include "engine/sync/synchronizers.h"

#include <string>

#include "framework/base/error.h"
#include "framework/comm/plain_memory.h"

namespace phalanx {

std::unique_ptr<Synchronizer> make_synchronizer(const Synchronizers::Choice& strategy, const SyncContext& context) {
  const auto traits = strategy.traits();
  if (traits.one_rank && context.group->size() != 1) {
    throw ConfigError("strategy " + strategy.selected() + " trains on one rank, but there are " +
                      std::to_string(context.group->size()) + "; use strategy: all_reduce");
  }
  if (traits.shared_memory) require_shared_memory(*context.group);
  return strategy.make(context);
}

}  // namespace phalanx
