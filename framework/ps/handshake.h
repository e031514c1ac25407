// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/ps/channel.h"
#include "framework/ps/deadline.h"
#include "framework/ps/greeting.h"

/// The end of a new connection to a server from which it was made: a client's, or another server's.
namespace phalanx::ps {

/// A connection on which both ends have proved that they know the secret.
struct Greeted {
  std::unique_ptr<Channel> channel{};
  std::string address{};
  bool reaches_memory = false;  // the server reaches ours
  std::int64_t start = 0;       // of the server: another number each time
};

/// A server that knows the secret does not do what the greeting wants: it does not lead its chain (replica.h).
class NotLeading : public Error {
 public:
  using Error::Error;
};

/// Sends a request and waits for its reply, over a connection that nobody else uses. Throws ConnectionError, also where
/// `stopping` becomes true.
Message converse(Channel& channel, Message message, Clock::time_point deadline, const std::atomic<bool>& stopping);

/// Connects to `address` and greets the server there: `greeting` without memory. Throws Error,
/// ConnectionRefused and NotLeading.
Greeted greet_server(const std::string& address, Greeting greeting, const std::string& secret,
                     Channel::MakeRoom make_room, Clock::time_point deadline, const std::atomic<bool>& stopping);

}  // namespace phalanx::ps
