// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <vector>

namespace phalanx::gloo {

/// Messages from a rank to itself, since Gloo connects a rank only to other ranks. Thread-safe.
class Loopback {
 public:
  using Payload = std::vector<std::byte>;

  void send(int tag, Payload payload);

  /// Returns the payload of the next message with this tag that no other call receives.
  std::future<Payload> recv(int tag);

 private:
  struct Mailbox {  // at least one of the two is empty
    std::deque<Payload> payloads;
    std::deque<std::promise<Payload>> readers;
  };

  std::mutex mutex_;
  std::map<int, Mailbox> mailboxes_;
};

}  // namespace phalanx::gloo
