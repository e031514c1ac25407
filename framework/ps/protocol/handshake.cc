// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/handshake.h"

#include <poll.h>

#include <utility>

#include "framework/base/authentication.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"

namespace phalanx::ps {

Message round_trip(Channel& channel, Message message, Clock::time_point deadline, const std::atomic<bool>& stopping) {
  channel.send(std::move(message));
  while (true) {
    channel.flush();
    if (auto reply = channel.receive()) return *std::move(reply);
    if (stopping || Clock::now() >= deadline) throw ConnectionError("no answer to the greeting in time");
    pollfd ready{channel.socket(), static_cast<short>(channel.has_output() ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&ready, 1, 10);
  }
}

HandshakeResult greet_server(const std::string& address, Greeting greeting, const std::string& secret,
                             Channel::AllocatePayload allocate_payload, Clock::time_point deadline,
                             const std::atomic<bool>& stopping) {
  const auto known = std::make_shared<bool>(false);
  auto guarded = [known, allocate_payload = std::move(allocate_payload)](const Message& begun) {
    if (!*known) throw ConnectionError("the server sent values before it identified itself");
    return allocate_payload(begun);
  };
  HandshakeResult greeted{
      .channel = std::make_unique<Channel>(connect_to(address, seconds_to(deadline).count()), std::move(guarded)),
      .address = address};
  const std::string own_nonce = random_text(), check = random_text();
  if (address.starts_with("unix:") && !greeting.replica) {
    greeting.memory = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(check.data()));
    greeting.memory_check = check;
  }
  greeted.channel->limit_text(kMaxGreeting);
  const std::string identity = encode(greeting);
  const auto say = [&](std::string text) {
    try {
      return round_trip(*greeted.channel, {.header = {.verb = Verb::kHello}, .text = std::move(text)}, deadline,
                        stopping);
    } catch (const ConnectionError& error) {
      throw Error("greeting of parameter server " + address + ": " + error.what());
    }
  };
  const std::string nonce = say(own_nonce).text;
  const Message reply = say(proof(secret, Role::kClient, own_nonce, nonce, identity) + identity);
  if (reply.header.status == Status::kRefused) throw NotLeading("parameter server " + address + ": " + reply.text);
  if (!equal_hashes(reply.text, proof(secret, Role::kServer, own_nonce, nonce, identity))) {
    throw Error("parameter server " + address + " does not know the secret");
  }
  *known = true;
  greeted.channel->limit_text(kMaxText);
  greeted.reaches_memory = reply.header.version == 1;
  greeted.start = reply.header.clock;
  return greeted;
}

}  // namespace phalanx::ps
