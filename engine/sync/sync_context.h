// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "framework/comm/communicator.h"
#include "framework/comm/mesh.h"
#include "framework/comm/store.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// What a strategy is made for: which replicas it makes agree, and where in the run they are.
///
/// A strategy answers for the parameters that it is attached to, and makes them agree among the ranks of `group`.
/// Strategies that are made of others give each a group of its own (over()). The mesh is that of the whole run, for
/// whatever a strategy needs beside it.
struct SyncContext {
  Mesh mesh;                   // of the run
  CommunicatorPtr group;       // the ranks that hold a replica each of the strategy's parameters
  std::int64_t backwards = 1;  // that add up to a step's gradients; 0: those are complete in before_update() alone
  double weight = 1;           // of this rank's replica in means over the group, in which all weights have the mean 1
  std::shared_ptr<ps::CurrentServers> servers{};  // parameter servers of the run; null: none
  Seconds timeout{600};                           // of requests to parameter servers
  std::string level{};                            // which of several in one strategy this is, for servers' tables

  /// The same for a part of the ranks, or of the parameters.
  SyncContext over(CommunicatorPtr ranks, std::int64_t times, double weight = 1) const {
    SyncContext part = *this;
    part.group = std::move(ranks);
    part.backwards = times;
    part.weight = weight;
    return part;
  }

  /// The same for one of the strategies that another one is made of, whose groups may have the same name.
  SyncContext at_level(const std::string& name) const {
    SyncContext part = *this;
    part.level += name + " ";
    return part;
  }
};

}  // namespace phalanx
