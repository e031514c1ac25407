// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"
#include "framework/ps/client/client.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/server/server.h"

namespace phalanx {

/// The part of a rank in a run: it trains, or it serves the parameters of the ranks that train (`roles.server`).
struct Role {
  std::unique_ptr<ps::Server> server{};           // of a rank that serves; null: the rank trains
  std::unique_ptr<ps::Client> presence{};         // shows the servers of this run that the rank has not left yet
  std::shared_ptr<ps::CurrentServers> servers{};  // used by a rank that trains; null or empty: no servers
  CommunicatorPtr world{};                        // the ranks with the same role
  int training = 0;                               // number of ranks that train
};

/// Gives each rank of `world` its role: the last `roles.server` ranks serve, the others train. With external servers,
/// or without servers, all ranks train. `links` makes the links of all clients of this rank; null: over sockets.
/// Collective. Throws ConfigError if no rank is left to train, or if roles.servers_file cannot be used.
Role assign_role(const ExperimentConfig& config, const CommunicatorPtr& world,
                 const std::shared_ptr<ps::Links>& links = nullptr);

/// Serves until all ranks that train have connected to this rank and left it again. Returns kDone. Throws CommError if
/// not all of them have connected within `timeout`.
int serve(const Role& role, Seconds timeout);

}  // namespace phalanx
