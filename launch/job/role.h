// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"
#include "framework/ps/client/client.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/server/server.h"
#include "framework/ps/server_list.h"

namespace phalanx {

/// Shows the servers of a run that this rank has not left yet. Belongs to one thread.
class ServerPresence {
 public:
  /// Without ClientOptions::leaves, an exception that destroys this object shows the servers that a rank is lost.
  explicit ServerPresence(ps::ClientOptions options);
  ~ServerPresence();
  ServerPresence(const ServerPresence&) = delete;
  ServerPresence& operator=(const ServerPresence&) = delete;

  /// Throws a CommError of kind kPeerLost if a server has ended or has noticed that a rank is lost. Never blocks.
  void check() const;

 private:
  bool leaves_by_itself_;
  ps::Client client_;
  int exceptions_;  // in flight when this object was created
};

/// The part of a rank in a run: it trains, or it serves the parameters of the ranks that train (`roles.server`).
struct Role {
  std::shared_ptr<ps::Server> server{};           // of a rank that serves; null: the rank trains
  std::unique_ptr<ServerPresence> presence{};     // of a rank that trains; null: no rank serves
  std::string presences{};                        // the namespace of the presences of all ranks
  std::shared_ptr<ps::CurrentServers> servers{};  // used by a rank that trains; null or empty: no servers
  CommunicatorPtr world{};                        // the ranks with the same role
  int training = 0;                               // number of ranks that train
  bool goes_on = false;                           // without lost ranks
};

/// The part of its role that a rank keeps when its world changes because ranks were lost (faults.on_lost_rank: shrink).
struct KeptRole {
  ps::KeptServers servers{};
  std::int64_t generation = 0;  // ServerList::generation of the last world that this rank knows
};

/// Gives each rank of `world` its role: the last `roles.server` ranks serve, the others train. With external servers,
/// or without servers, all ranks train. `links` makes the links of all clients of this rank; null: over sockets.
/// If the job goes on without lost ranks, `kept` is filled, and has the rank's role in the world before; null: it does
/// not. Servers that are kept go on with their tables, and the run gets new ones. Collective. Throws ConfigError if no
/// rank is left to train, or if roles.servers_file cannot be used.
Role assign_role(const ExperimentConfig& config, const CommunicatorPtr& world,
                 const std::shared_ptr<ps::Links>& links = nullptr, KeptRole* kept = nullptr);

/// Serves until all ranks that train have connected to this rank and left it again. Returns kDone. Throws CommError if
/// not all of them have connected within `timeout`, and of kind kPeerLost if one of them is lost before that, or, if
/// the job goes on without it, later.
int serve(const Role& role, Seconds timeout);

}  // namespace phalanx
