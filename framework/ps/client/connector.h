// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/client/link_options.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/protocol/handshake.h"

namespace phalanx::ps {

/// All servers that held a part have ended, and none comes back.
class AllHaveEnded : public Error {
 public:
  using Error::Error;
};

/// Connects a client to the server that leads one part of the tables. If several servers hold the part (replica.h) and
/// the leader has ended, or has been lost for LinkOptions::failover, asks another one to lead.
///
/// One thread connects; stop() may be called from any thread.
class Connector {
 public:
  /// Each channel that the connector makes allocates payloads with `allocate_payload`.
  Connector(const LinkOptions& options, Channel::AllocatePayload allocate_payload);

  /// Makes the first connection. With LinkOptions::retry, repeats the attempt up to the timeout, since external servers
  /// may be started after their clients. Throws LinkOptions::lost().
  HandshakeResult connect_first();

  /// Tries each member once. `lost_at` is the time at which the former connection was lost. Throws CannotConnect if a
  /// later attempt may succeed, AllHaveEnded if nothing listens for any member and none comes back
  /// (LinkOptions::come_back), otherwise Error.
  HandshakeResult connect(Clock::time_point lost_at, Clock::time_point deadline);

  /// Makes the attempt to connect that is in progress, if any, fail soon.
  void stop() { stopping_ = true; }
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  // The result of trying all members once.
  struct Search {
    std::optional<HandshakeResult> found{};
    std::vector<std::string> failures{};
    bool leader_has_ended = false;
    bool all_have_ended = true;
    bool none_answered = true;
  };
  Search search(bool take_over, Clock::time_point deadline);
  bool try_member(std::size_t member, const Greeting& greeting, Clock::time_point deadline, Search& search);

  const LinkOptions options_;
  const std::string incarnation_;
  const Channel::AllocatePayload allocate_payload_;
  std::size_t leader_ = 0;  // index of the last known leader
  std::atomic<bool> stopping_ = false;
};

}  // namespace phalanx::ps
