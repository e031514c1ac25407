// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/protocol/greeting.h"

/// The connecting side of a new connection to a server. Clients and other servers use it.
namespace phalanx::ps {

/// A connection on which both sides have proved that they know the secret.
struct HandshakeResult {
  std::unique_ptr<Channel> channel{};
  std::string address{};
  bool reaches_memory = false;  // the server can access our memory
  std::int64_t start = 0;       // random number of this start of the server
};

/// The server knows the secret but refuses the greeting, for example because it does not lead the chain (replica.h).
class NotLeading : public Error {
 public:
  using Error::Error;
};

/// Sends a request and waits for its reply, over a connection that no one else uses. Throws ConnectionError at the
/// deadline, if the connection fails, or if `stopping` becomes true.
Message round_trip(Channel& channel, Message message, Clock::time_point deadline, const std::atomic<bool>& stopping);

/// Connects to `address` and greets the server there. Fills in the memory fields of `greeting`. Throws Error,
/// ConnectionRefused or NotLeading.
HandshakeResult greet_server(const std::string& address, Greeting greeting, const std::string& secret,
                             Channel::AllocatePayload allocate_payload, Clock::time_point deadline,
                             const std::atomic<bool>& stopping);

}  // namespace phalanx::ps
