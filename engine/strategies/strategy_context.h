// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/comm/store/store.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// Describes what a strategy is made for: the replicas that it synchronizes, and their place in the run.
///
/// A strategy manages the parameters that it is attached to, and synchronizes them among the ranks of `group`. A
/// strategy that consists of others gives each of these a group (over()). The mesh is the mesh of the whole run, for
/// anything else that a strategy needs.
struct StrategyContext {
  Mesh mesh;                   // of the run
  CommunicatorPtr group;       // the ranks that each hold a replica of the strategy's parameters
  std::int64_t backwards = 1;  // per step, accumulated; 0 if gradients are complete only in before_update()
  double weight = 1;           // of this rank's replica in means over the group; the mean of all weights is 1
  std::shared_ptr<ps::CurrentServers> servers{};  // parameter servers of the run; null or empty: no servers
  Seconds timeout{600};                           // for requests to parameter servers
  std::string level{};                            // names this part of a strategy, for tables on servers
  std::shared_ptr<const bool> accumulates{};      // true during backwards that do not count; null: all of them do

  /// A strategy that combines gradients of different ranks during backward calls this with each part of this rank's
  /// gradients before it combines that part. May be null.
  std::function<void(const at::Tensor& gradients)> local_gradients{};

  /// Returns the levels of the run's topology, coarsest first, with this rank's values. Absent if there are no levels.
  /// Throws ConfigError if this rank has no value.
  std::function<std::vector<Key>()> topology{};

  /// Returns the context of a strategy for some of the ranks or of the parameters.
  StrategyContext over(CommunicatorPtr ranks, std::int64_t times, double weight = 1) const {
    StrategyContext part = *this;
    part.group = std::move(ranks);
    part.backwards = times;
    part.weight = weight;
    return part;
  }

  /// Returns the context of one of the strategies that another one consists of, whose groups may have the same name.
  StrategyContext at_level(const std::string& name) const {
    StrategyContext part = *this;
    part.level += name + " ";
    return part;
  }
};

}  // namespace phalanx
