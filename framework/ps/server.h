#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/store.h"
#include "framework/ps/shard_host.h"

namespace phalanx::ps {

struct ServerOptions {
  std::vector<std::string> listen{};  // addresses as of framework/base/sockets.h; port 0 takes a free one
  std::string secret{};               // that clients have to know
  HostLimits limits{};
};

/// A parameter server: one thread that holds shards and serves all clients that connect, whoever comes first. Several
/// of them, in any processes, make up a service: a client divides its tables among those that it is given (Client).
///
/// A malformed stream ends its connection, and a request that makes no sense is refused; both are logged, and the
/// server goes on. A client whose connection ends leaves: nobody waits for it any more.
class Server {
 public:
  /// Listens, and starts the thread. Throws Error for an address that cannot be listened at.
  explicit Server(const ServerOptions& options);

  /// Ends the thread and closes all connections: what clients wait for then fails.
  ~Server();

  /// Where it really listens, in the order of ServerOptions::listen.
  const std::vector<std::string>& addresses() const;

  /// Blocks until `clients` of a job have connected, since the server was made. False: `timeout` was over before.
  bool wait_for_clients(const std::string& job, int clients, Seconds timeout) const;

  /// Blocks while clients of a job are connected.
  void wait_until_left(const std::string& job) const;

 private:
  class Loop;

  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace phalanx::ps
