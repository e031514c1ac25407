// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/ps/server.h"

namespace phalanx::ps {

/// The servers that a job uses, and the secret that its clients share.
struct ServerList {
  struct One {
    std::string host;                    // host_key()
    std::vector<std::string> addresses;  // Unix sockets, which only its host reaches, before others
  };
  std::vector<One> servers;
  std::string secret;
  std::string run{};    // namespace of the run's tables, where the servers are not of this job; empty: they are
  Seconds retry{0};     // ClientOptions::retry
  int replicas = 1;     // ClientOptions::replicas
  Seconds failover{5};  // ClientOptions::failover

  /// The same with servers elsewhere, one at each address.
  ServerList at(const std::vector<std::string>& addresses) const;

  /// Of each server the addresses that somebody on `host` may try, for ClientOptions::servers.
  std::vector<std::vector<std::string>> reached_from(const std::string& host) const;
};

/// The addresses in a file: one in each line, as framework/base/sockets.h has them; what follows a # is a comment.
/// Throws DataError, with file and line, for a file that cannot be read, another form, an address that comes twice, and
/// where there is none.
std::vector<std::string> read_addresses(const std::string& path);

/// The same, as rank 0 reads it. Collective; throws on all ranks alike.
std::vector<std::string> read_addresses(const std::string& path, Communicator& group);

/// What start_servers() leaves on a rank.
struct StartedServers {
  std::unique_ptr<Server> own;  // null: this rank serves nobody
  ServerList all;
};

/// Starts a server on each rank of a group where `serves` is true, with a new secret: it listens at a Unix socket of
/// its own, and on the network unless all ranks are on one host. Collective. Throws Error where a server cannot listen.
StartedServers start_servers(bool serves, Communicator& group);

}  // namespace phalanx::ps
