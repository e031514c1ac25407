#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::ps {

class Server;

/// The servers of a job, and the secret that its clients share.
struct ServerList {
  struct One {
    std::string host;                    // host_key()
    std::vector<std::string> addresses;  // Unix sockets, which only its host reaches, before others
  };
  std::vector<One> servers;
  std::string secret;

  /// Of each server the addresses that somebody on `host` may try, for ClientOptions::servers.
  std::vector<std::vector<std::string>> reached_from(const std::string& host) const;
};

/// Where a server of a job is to listen: at a Unix socket of its own, and on the network unless all its clients are on
/// this host.
std::vector<std::string> listen_addresses(bool one_host);

/// The servers of all ranks of a group, in their order; null: this rank has none. Collective.
ServerList gather_servers(const Server* own, const std::string& secret, Communicator& group);

}  // namespace phalanx::ps
