// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <string>

#include "framework/base/descriptor.h"
#include "framework/base/handshake.h"
#include "framework/base/log_rate_limiter.h"
#include "framework/base/timed_stream.h"

namespace phalanx {

/// Limits for peers that have not proved that they know the secret.
struct StrangerLimits {
  std::chrono::duration<double> greeting{10};  // time within which a peer must prove it
  std::size_t pending =
      256;  // their number; after a quarter of a second, a newcomer may replace the one that waits longest
};

/// Waits at a listening socket for peers that know a secret. Others are disconnected, and logged at a limited rate.
/// They take no more memory than the handshake needs, and cannot keep a peer from being admitted. Not thread-safe.
class AuthenticatingListener {
 public:
  struct Peer {
    Descriptor socket;
    std::string claim;  // HandshakeProtocol::claim_bytes bytes
  };

  /// `name` says in the log who listens. The socket must be non-blocking (listen_at()).
  AuthenticatingListener(std::string name, Descriptor listener, HandshakeProtocol protocol, std::string secret,
                         const StrangerLimits& limits = {});

  /// Blocks until a peer has been admitted, and returns it. Returns nothing at the deadline. Throws CommError::kSystem
  /// if the socket fails.
  std::optional<Peer> next(TimedStream::Deadline deadline);

 private:
  using Clock = std::chrono::steady_clock;

  struct Stranger {
    Descriptor socket;
    ServerHandshake handshake;
    Clock::time_point since = Clock::now();
    std::string message{};  // the next message, of which `received` bytes have arrived
    std::size_t received = 0;
  };
  using Strangers = std::list<Stranger>;  // oldest first

  bool accepts();
  Clock::time_point due(TimedStream::Deadline deadline, bool accepting) const;
  void accept_all();
  void drop_late();
  std::optional<Peer> serve(Strangers::iterator stranger);
  void drop(Strangers::iterator stranger, const std::string& why);

  const std::string name_;
  const Descriptor listener_;
  const HandshakeProtocol protocol_;
  const std::string secret_;
  const StrangerLimits limits_;
  Strangers strangers_;
  Clock::time_point paused_until_{};  // no connection is accepted before
  LogRateLimiters log_strangers_;
};

}  // namespace phalanx
