// SPDX-License-Identifier: Apache-2.0
// Data that peers send, and text from users and launchers.
#include <ATen/ops/empty.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/authentication.h"
#include "framework/base/config/config.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/http_authentication.h"
#include "framework/base/http/http_get.h"
#include "framework/comm/launch/init_method.h"
#include "framework/comm/launch/node_list.h"
#include "framework/comm/store/store_session.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/element_ranges.h"
#include "framework/ps/protocol/greeting.h"
#include "framework/ps/replication/replica_message.h"
#include "framework/ps/shards/shard_host.h"
#include "tests/fuzz/mutators.h"

namespace phalanx::fuzz {
namespace {

const std::string kSecret = "a secret of the fuzzers";
constexpr std::int64_t kMemory = 1 << 20;  // bytes that a server may use

// A connected pair of sockets. `far` has sent the input and nothing follows.
struct Connection {
  Descriptor near, far;
};

Connection connection() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  return {Descriptor(pair[0]), Descriptor(pair[1])};
}

// Calls `receive` for as long as the connection holds: until all of `input` was read, or an Error refuses it. Returns
// at the end of an input of which nothing is left over.
template <class Receive>
void feed(int socket, std::string_view input, Receive receive) {
  bool idle = false;
  while (!input.empty() || !idle) {
    const ssize_t count = input.empty() ? 0 : ::send(socket, input.data(), input.size(), MSG_NOSIGNAL);
    if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
    idle = !receive() && count <= 0;
    char discarded[4096];
    while (::recv(socket, discarded, sizeof(discarded), 0) > 0) {
    }
    if (idle && !input.empty()) throw Error("the peer reads no more");
  }
  ::shutdown(socket, SHUT_WR);
}

void read_greeting(std::string_view input) { ps::encode(ps::decode_greeting(input)); }

void read_ranges(std::string_view input) { ps::to_text(ps::ranges_of_text(std::string(input), 1000)); }

// The messages of a client that has proved that it knows the secret.
void serve_client(std::string_view input) {
  ps::ShardHost host({.memory_bytes = kMemory});
  const ps::ClientId client{.job = "job"};
  const auto payload = [&](const ps::Message& begun) {
    const auto transfer = host.transfer(client, begun.header);
    if (begun.header.payload_bytes != transfer.sent || begun.header.dtype != static_cast<std::uint8_t>(transfer.dtype))
      throw ps::ConnectionError("another size");
    const auto elements = transfer.sent / c10::elementSize(transfer.dtype);
    return at::empty({static_cast<std::int64_t>(elements)}, at::dtype(transfer.dtype));
  };
  auto [near, far] = connection();
  ps::Channel channel(std::move(near), payload);
  std::string refused;
  feed(far.get(), input, [&] {
    auto message = channel.receive();
    if (!message) return false;
    if (message->header.in_memory()) throw Error("memory of this process");
    host.handle(client, *message, [&](const ps::Message& reply, const at::Tensor&) {
      if (reply.header.status == ps::Status::kRefused) refused = reply.text;
    });
    return true;
  });
  if (!refused.empty()) throw Error(refused);
}

// The messages of another server.
void serve_replica(std::string_view input) {
  auto [near, far] = connection();
  ps::Channel channel(std::move(near), [](const ps::Message& begun) { return ps::room_for_replica(begun, kMemory); });
  feed(far.get(), input, [&] {
    auto message = channel.receive();
    if (!message) return false;
    auto replica = ps::decoded(*std::move(message));
    if (replica.kind == ps::ReplicaMessage::Kind::kInstall) {
      ps::ShardHost({.memory_bytes = kMemory}).load(replica.state);
    }
    return true;
  });
}

// Parses what a peer sends before it has proved that it has the secret.
void greet_store(std::string_view input) {
  auto [near, far] = connection();
  StoreSession session(std::move(near), kSecret);
  feed(far.get(), input, [&] { return session.receive().has_value(); });
}

// The requests of a rank that has proved that it knows the secret.
void serve_store(std::string_view input) {
  auto [near, far] = connection();
  StoreSession session(std::move(near), kSecret);
  const std::string nonce(kProofBytes, '7');
  const std::string hello = std::string(kClientOpening) + nonce;
  (void)!::send(far.get(), hello.data(), hello.size(), 0);
  session.receive();
  char answer[kHelloBytes];
  if (::recv(far.get(), answer, sizeof(answer), 0) != sizeof(answer)) throw std::runtime_error("no greeting");
  const std::string their_nonce(answer + kServerOpening.size(), kProofBytes);
  const std::string ours = proof(kSecret, Role::kClient, nonce, their_nonce, kStoreIdentity);
  (void)!::send(far.get(), ours.data(), ours.size(), 0);
  session.receive();
  if (!session.admitted()) throw std::runtime_error("not admitted");
  feed(far.get(), input, [&] {
    const auto request = session.receive();
    if (request) session.reply({}, request->value);
    return request.has_value();
  });
}

// A config of a table, which clients send, and which has fields of all kinds.
void read_config(std::string_view input) {
  ps::CreateRequest request;
  config::load_text(request, std::string(input), "input");
  config::dump(request);
}

void read_node_list(std::string_view input) {
  static_cast<void>(parse_task_counts(std::string(input)));
  expand_node_list(std::string(input));
}

void read_init_method(std::string_view input) {
  detect_launch_environment({.url = std::string(input)}, [](const std::string&) { return std::nullopt; });
}

void read_http_address(std::string_view input) { parse_http_address(input); }

// A server's challenge, as a client gets it.
void read_http_challenge(std::string_view input) { digest_answer(input, "GET", "/metrics", kSecret, "nonce"); }

const bool kMessagesAdded =
    add_target({"greeting", read_greeting}) && add_target({"ranges", read_ranges}) &&
    add_target({"client_messages", serve_client, mutate_messages}) &&
    add_target({"replica_messages", serve_replica, mutate_messages}) && add_target({"store_greeting", greet_store}) &&
    add_target({"store_requests", serve_store, mutate_store_requests}) && add_target({"config", read_config}) &&
    add_target({"node_list", read_node_list}) && add_target({"init_method", read_init_method}) &&
    add_target({"http_address", read_http_address}) && add_target({"http_challenge", read_http_challenge});

}  // namespace
}  // namespace phalanx::fuzz
