// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/zeros.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/authentication.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/greeting.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps::testing {

/// A client that sends arbitrary messages to one server.
class RawClient {
 public:
  explicit RawClient(const std::string& address, int number = 7)
      : channel_(connect_to(address, 10), [](const Message& begun) {
          return at::zeros({static_cast<std::int64_t>(begun.header.payload_bytes)}, at::kByte);
        }) {
    const std::string own = random_text(), identity = encode({.job = "default", .client = number, .incarnation = "1"});
    const std::string nonce = ask({.header = {.verb = Verb::kHello}, .text = own}).text;
    ask({.header = {.verb = Verb::kHello}, .text = proof(kSecret, Role::kClient, own, nonce, identity) + identity});
  }

  /// Sends a request and returns the reply. Throws ConnectionError if the server ends the connection.
  Message ask(Message request) {
    send(std::move(request));
    for (int i = 0; i < 10'000; ++i) {
      channel_.flush();
      if (auto reply = channel_.receive()) return *std::move(reply);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw Error("the server did not answer");
  }

  /// Sends a request, whose reply is not read.
  void send(Message request) {
    request.header.id = ++id_;
    channel_.send(std::move(request));
    while (channel_.has_output()) channel_.flush();
  }

  /// Sends only the header of a request. Nothing else may be sent after that.
  void send_header(Header header) {
    header.id = ++id_;
    if (::send(channel_.socket(), &header, sizeof(header), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(header))) {
      throw Error("the server takes no more than a part of a header");
    }
  }

 private:
  Channel channel_;
  std::uint64_t id_ = 0;
};

}  // namespace phalanx::ps::testing
