// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/strategies/strategy_context.h"
#include "framework/base/metrics.h"
#include "framework/comm/communicator.h"
#include "framework/ps/client/client.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/server/server.h"

namespace phalanx {

/// The parameter servers of a strategy. These are the servers of the run (`roles`), if it has any; otherwise every rank
/// of the strategy's own group runs one, which serves while the rank trains. In a replay, the recording answers
/// instead, and no server runs.
class ParameterService {
 public:
  /// Collective.
  explicit ParameterService(const StrategyContext& context);

  ps::Client& client() { return *client_; }

  /// Registers the function that moves the tables when the servers of the context change. `move` must first call
  /// follow_servers(). It is never called for servers that belong to the ranks.
  void on_change_of_servers(std::function<void()> move);

  /// Connects client() to the servers that the context has now, where this service has no tables yet. Returns the
  /// former client, whose servers still have the tables. Collective. Throws CommError if a server cannot be reached.
  std::unique_ptr<ps::Client> follow_servers();

  /// Destroys the former client and has its servers delete the tables. If they cannot, a warning is logged. Collective.
  void leave(std::unique_ptr<ps::Client> former);

  /// Returns Client::lost_updates(), summed with the counts from servers that the run has left.
  std::int64_t lost_updates() const { return lost_updates_ + client_->lost_updates(); }

  /// Returns what the servers have done so far for the tables of this service, for all clients: for server i,
  /// "server_<i>_requests", "server_<i>_bytes_received" and "server_<i>_bytes_sent". `prefix` comes before each name.
  /// If a server is lost, there are none, and a warning is logged. Blocks.
  Metrics metrics_of_servers(const std::string& prefix) const;
  Communicator& group() { return *group_; }

  /// Returns ps::ServerList::generation of the servers.
  std::int64_t generation() const { return servers_ ? servers_->list().generation : 0; }

  /// Returns the options of a client that reads or removes the tables when no rank uses them any more. No table counts
  /// its clock.
  ps::ClientOptions options_for_later() const;

  /// Returns ps::Links::tables_are_there().
  bool tables_are_there() const;

 private:
  // Returns a client of `list` after this number of moves. The namespace of the tables differs between two consecutive
  // moves, since a server may be both in the former list and in the new one.
  std::unique_ptr<ps::Client> connect(const ps::ServerList& list, std::int64_t moves) const;
  ps::ClientOptions options_for(const ps::ServerList& list, std::int64_t moves) const;

  // Does the same, and deletes the tables that an earlier start of the run may have left. Collective.
  std::unique_ptr<ps::Client> connect_without_old_tables(const ps::ServerList& list, std::int64_t moves) const;

  CommunicatorPtr group_;
  std::string owner_;  // of the tables; distinguishes the strategies that use the same servers
  Seconds timeout_;
  std::shared_ptr<ps::CurrentServers> servers_;  // null if every rank has a server
  std::unique_ptr<ps::Server> server_;           // of this rank; null if the run has its own servers, and in a replay
  std::unique_ptr<ps::Client> client_;
  std::shared_ptr<ps::Links> links_;  // null: over sockets
  std::int64_t moves_ = 0;
  std::int64_t lost_updates_ = 0;  // on servers that the run has left
};

}  // namespace phalanx
