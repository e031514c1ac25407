// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/ps/client/request.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/protocol/handshake.h"

namespace phalanx::ps {

/// A client's connection to a server. It is closed while a broken connection is being re-established. Not thread-safe.
class ServerConnection {
 public:
  /// With `replicated`, other servers hold the same values and may take over from this one once it has been silent for
  /// `failover`. With `checksums`, requests with tensors have one, and their replies must too.
  ServerConnection(bool replicated, Seconds failover, bool checksums = false)
      : replicated_(replicated), failover_(failover), checksums_(checksums) {}

  void open(HandshakeResult server);
  void close() { server_.channel.reset(); }
  bool is_open() const { return server_.channel != nullptr; }

  /// Returns the channel of an open connection.
  Channel& channel() { return *server_.channel; }

  /// Return properties of the server, also after close().
  const std::string& address() const { return server_.address; }
  bool reaches_memory() const { return server_.reaches_memory; }  // the server can access our memory
  std::int64_t start() const { return server_.start; }            // random number of this start of the server

  /// Sends a request over the open connection. Throws ConnectionError if the server has gone.
  void transmit(Request& request);

  /// Records that the server has answered.
  void record_reply() { last_reply_at_ = Clock::now(); }

  /// Returns the ping to be sent now to a server that has been silent for half the failover time, or null. Silence
  /// alone proves nothing: a connection to a host that has died does not break, and a server that waits for other
  /// clients answers late. Throws Error if a ping was not answered within the failover time.
  RequestPtr due_ping();

 private:
  const bool replicated_;
  const Seconds failover_;
  const bool checksums_;
  HandshakeResult server_;
  Clock::time_point last_reply_at_ = Clock::now();  // when the server last answered
  RequestPtr ping_{};                               // null: none is in flight
  Clock::time_point pinged_at_{};
};

}  // namespace phalanx::ps
