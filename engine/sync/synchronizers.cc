#include "engine/sync/synchronizers.h"

#include <string>

#include "framework/base/error.h"
#include "framework/comm/shared_memory.h"

namespace phalanx {

std::unique_ptr<Synchronizer> make_synchronizer(const Synchronizers::Choice& strategy, const Replicas& replicas) {
  const auto traits = strategy.traits();
  if (traits.one_rank && replicas.group->size() != 1) {
    throw ConfigError("strategy " + strategy.selected() + " trains on one rank, but there are " +
                      std::to_string(replicas.group->size()) + "; use strategy: all_reduce");
  }
  if (traits.shared_memory) refuse_shared_memory(*replicas.group);
  return strategy.make(replicas);
}

}  // namespace phalanx
