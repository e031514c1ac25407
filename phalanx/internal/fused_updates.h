// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "engine/optim/clip.h"
#include "phalanx/internal/replica.h"
#include "phalanx/optimizers.h"

namespace phalanx {

/// An optimizer of the engine on the parameters that this rank updates, and the replica whose steps it takes.
class FusedOptimizer::Updates {
 public:
  /// Collective.
  Updates(DistributedDataParallel::Replica& replica, std::unique_ptr<Optimizer> optimizer, ClipLimits limits);
  ~Updates() { replica_.detach(); }
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  void step();

  Clip& optimizer() { return optimizer_; }
  Exchange& exchange() { return replica_.exchange(); }

 private:
  DistributedDataParallel::Replica& replica_;
  Clip optimizer_;
  std::set<std::string> excluded_;  // from updates
};

}  // namespace phalanx
