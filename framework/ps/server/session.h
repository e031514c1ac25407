// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/keyed_hash.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/protocol/greeting.h"
#include "framework/ps/server/peer_memory.h"
#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {

class Chain;

/// A connection that a client or another server has made to this server.
struct Session {
  explicit Session(Descriptor socket)
      : channel(std::move(socket), [this](const Message& begun) { return allocate_payload(begun); }) {
    channel.limit_text(kMaxGreeting);
  }

  bool is_handshaking() const { return !client && !leader; }

  Channel channel;
  Clock::time_point since = Clock::now();
  std::string nonce = random_text();  // nonce of the server
  std::string client_nonce{};         // empty until the first message
  bool has_tried = false;             // to prove that it knows the secret, which is allowed once
  std::optional<ClientId> client{};   // set once the client has been admitted
  std::shared_ptr<Chain> chain{};     // chain that holds the tables used; null: only this server does
  std::optional<int> leader{};        // set if the peer is this member of the chain, which leads it
  std::optional<PeerMemory> memory{};
  bool left = false;  // the client has announced that it leaves
  std::function<at::Tensor(const Message& begun)> allocate_payload;
};

}  // namespace phalanx::ps
