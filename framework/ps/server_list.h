// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/ps/server/server.h"

namespace phalanx::ps {

class Links;

/// The servers that a job uses, and the secret shared by its clients.
struct ServerList {
  struct Entry {
    std::string host;                    // host_key()
    std::vector<std::string> addresses;  // Unix sockets first, which can only be reached from the same host
  };
  std::vector<Entry> servers;
  std::string secret;
  std::string run{};    // namespace of the run's tables if the servers do not belong to this job, otherwise empty
  Seconds retry{0};     // ClientOptions::retry
  int replicas = 1;     // ClientOptions::replicas
  Seconds failover{5};  // ClientOptions::failover
  std::shared_ptr<Links> links{};  // ClientOptions::links
  bool checksums = false;          // ClientOptions::checksums

  /// The number of the job's world. Servers outlive a world that has lost ranks, and each world has tables of its own.
  /// 0: the world does not change.
  std::int64_t generation = 0;

  /// Returns the same list with external servers, one at each address.
  ServerList at(const std::vector<std::string>& addresses) const;

  /// Returns, for each server, the addresses that a process on `host` may try (see ClientOptions::servers).
  std::vector<std::vector<std::string>> addresses_for(const std::string& host) const;
};

/// Reads addresses from a file: one per line, in the format of framework/base/sockets.h; a # starts a comment. Throws
/// DataError, with file and line, if the file cannot be read, a line is malformed, an address is repeated, or there is
/// no address.
std::vector<std::string> read_addresses(const std::string& path);

/// Returns the addresses as read by rank 0. Collective; throws the same error on all ranks.
std::vector<std::string> read_addresses(const std::string& path, Communicator& group);

/// The servers of a job, which it keeps when their ranks form a new group.
struct KeptServers {
  std::shared_ptr<Server> own{};  // of this rank; null: it has none yet, or serves nothing
  std::string secret{};           // empty: servers have not been started yet
  std::string presences{};        // ServerOptions::presences of servers that are started
};

/// The result of start_servers() on one rank.
struct StartedServers {
  std::unique_ptr<Server> own;  // null: this rank is not a server, or has kept one
  ServerList all;
};

/// Starts a server on each rank of a group for which `serves` is true, with a new secret. With links that do not need
/// servers, none is started on this rank; the list still names the servers of the ranks. Each server listens at its own
/// Unix socket, and also on the network unless all ranks are on one host: at the address of the route to rank 0's host,
/// or of the interface that the user has set (wanted_interface()). A server that is `kept` goes on, with its secret,
/// which all ranks have kept. Collective. Throws Error if a server cannot listen.
StartedServers start_servers(bool serves, Communicator& group, std::shared_ptr<Links> links = nullptr,
                             const KeptServers& kept = {});

}  // namespace phalanx::ps
