// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/store.h"
#include "framework/ps/shard_host.h"

namespace phalanx::ps {

struct CheckpointOptions {
  std::string folder{};  // of this server alone; empty: none
  Seconds every{60};     // and once more at the end
};

/// Limits for peers that have not proved who they are, and for all of them together. Memory and files of a server stay
/// bounded whoever connects.
struct AdmissionLimits {
  Seconds greeting{10};              // within which a connection has to say who it is
  std::size_t strangers = 256;       // connections that have not; a silent one makes room for a newcomer after a second
  std::size_t connections = 10'000;  // in all; more wait to be accepted
};

struct ServerOptions {
  std::vector<std::string> listen{};  // addresses as of framework/base/sockets.h; port 0 takes a free one
  std::string secret{};               // that clients have to know; at least kLeastSecret bytes
  HostLimits limits{};
  Seconds grace{0};  // for which others wait for a client whose connection has broken
  CheckpointOptions checkpoint{};
  AdmissionLimits admission{};
};

/// A parameter server: one thread that holds shards and serves all clients that connect, whoever comes first. Several
/// of them, in any processes, make up a service: a client divides its tables among those that it is given (Client).
///
/// A malformed stream ends its connection, and a request that makes no sense is refused; both are logged, and the
/// server goes on. If connections cannot be accepted, because there are no files or no memory left, it tries again
/// every second. If its thread fails for any other reason, it logs why and ends the process with status 1, since
/// clients would wait for it in vain. A client that leaves, or whose connection has ended and not come back within the
/// grace, is not waited for any more.
///
/// With a folder for checkpoints, a server begins with the newest one there that is whole, and writes one in every
/// interval in which anything has changed, without stopping: requests wait while the shards are copied, not while they
/// are written. What was acknowledged after the last one is lost when the process is killed; clients are told.
class Server {
 public:
  /// Listens, and starts the thread. Throws Error for an address that cannot be listened at, and for a folder that has
  /// checkpoints of which none can be used, and std::invalid_argument for a secret that is too short.
  explicit Server(const ServerOptions& options);

  /// Stops, unless it has stopped; the log has the reason where that throws.
  ~Server();

  /// Ends the thread, closes all connections, and writes the last checkpoint: what clients wait for then fails. Throws
  /// Error if the last checkpoint cannot be written. The last call.
  void stop();

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
