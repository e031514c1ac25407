// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/store/store.h"
#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {

struct CheckpointOptions {
  std::string folder{};  // used by this server alone; empty: no checkpoints
  Seconds every{60};     // interval; another one is written at the end
};

/// Limits for connected peers that have not proved who they are, and for all connections together. They bound the
/// memory and the files that a server uses, whoever connects.
struct AdmissionLimits {
  Seconds greeting{10};                  // time limit for a connection to identify itself
  std::size_t pending_handshakes = 256;  // unidentified connections; after one second a newcomer may replace one
  std::size_t connections = 10'000;      // total; further ones wait to be accepted
};

struct ServerOptions {
  std::vector<std::string> listen{};  // addresses as in framework/base/sockets.h; port 0: any free port
  std::string secret{};               // secret that clients must know; at least kMinSecretBytes bytes
  HostLimits limits{};
  Seconds grace{0};  // time that other clients wait for a client whose connection has broken
  CheckpointOptions checkpoint{};
  AdmissionLimits admission{};

  /// Clients of jobs whose name begins with this only show that their processes are there (Server). Empty: there are
  /// none.
  std::string presences{};
};

/// A parameter server: one thread that holds shards and serves all clients, in the order in which their requests
/// arrive. Several servers, in any processes, form a service: a client divides its tables among the servers that it is
/// given (Client).
///
/// A malformed stream ends its connection, and an invalid request is refused; both are logged, and the server
/// continues. If connections cannot be accepted because there are no files or no memory left, it tries again every
/// second. If its thread fails for any other reason, it logs why and ends the process with status 1, since clients
/// would otherwise wait for it in vain. Other clients do not wait for a client that has left, or whose connection has
/// ended and has not been re-established within `grace`.
///
/// With ServerOptions::presences, each process of a job keeps one connection of such a client, and all its clients have
/// the same number. If the connection ends and the client has not left, the process is lost. The server then forgets
/// all clients with its number as soon as their connections have ended: it carries out the requests that have arrived
/// whole, and drops their waiting reads, their clocks, and the numbers of their last requests. It also ends the other
/// connections of clients of that job, and refuses new ones, so that their processes learn of the loss
/// (Client::has_lost_server()).
///
/// With a folder for checkpoints, a server starts from the newest intact one. It writes a new one in every interval in
/// which anything has changed. Requests wait while the shards are copied, but not while the copy is written. If the
/// process is killed, updates acknowledged after the last checkpoint are lost; clients are told.
class Server {
 public:
  /// Listens and starts the thread. Throws Error if it cannot listen at an address, or if the folder has checkpoints of
  /// which none can be used, and std::invalid_argument if the secret is too short.
  explicit Server(const ServerOptions& options);

  /// Stops the server unless stop() has been called. Errors are logged.
  ~Server();

  /// Ends the thread, closes all connections and writes the last checkpoint. Pending requests of clients fail. Throws
  /// Error if the last checkpoint cannot be written. No other function may be called afterwards.
  void stop();

  /// Returns the addresses at which the server actually listens, in the order of ServerOptions::listen.
  const std::vector<std::string>& addresses() const;

  /// Blocks until `clients` clients of a job have connected since the server was created. Returns false if `timeout`
  /// elapses first, or if one is lost.
  bool wait_for_clients(const std::string& job, int clients, Seconds timeout) const;

  /// Blocks while clients of a job are connected.
  void wait_until_left(const std::string& job) const;

  /// Blocks while clients of a job are connected, unless one is lost.
  void wait_until_left_or_lost(const std::string& job) const;

  /// Returns true if the connection of a client of the job has ended although the client had not left.
  bool has_lost(const std::string& job) const;

 private:
  class Loop;

  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace phalanx::ps
