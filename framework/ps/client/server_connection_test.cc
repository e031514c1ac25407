// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/server_connection.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/ps/protocol/checksum.h"

namespace phalanx::ps {
namespace {

// Both ends of a connection between a client and a server that is played by the test.
struct TwoEnds {
  std::unique_ptr<Channel> client, server;

  TwoEnds() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets.data()), 0);
    const auto allocate_payload = [](const Message& begun) {
      return at::empty({static_cast<std::int64_t>(begun.header.payload_bytes)}, at::kByte);
    };
    client = std::make_unique<Channel>(Descriptor(sockets[0]), allocate_payload);
    server = std::make_unique<Channel>(Descriptor(sockets[1]), allocate_payload);
  }
};

Request push_of(std::int64_t elements) {
  Request request;
  request.message.header.verb = Verb::kPush;
  request.tensor = at::arange(elements, at::kLong);
  request.transfer = dense_transfer(Verb::kPush, request.tensor.nbytes(), at::kLong);
  return request;
}

// Returns the header of the request that arrives at the server.
Header transmitted(ServerConnection& connection, Channel& server, Request request) {
  connection.transmit(request);
  std::optional<Message> message = server.receive();
  EXPECT_TRUE(message.has_value());
  return message ? message->header : Header{};
}

TEST(ServerConnection, SendsLargeValuesAsAnAddressIfTheServerReachesTheMemory) {
  TwoEnds ends;
  ServerConnection connection(false, Seconds(0));
  connection.open({.channel = std::move(ends.client), .reaches_memory = true});
  EXPECT_FALSE(transmitted(connection, *ends.server, push_of(4)).in_memory());
  const Request large = push_of(1000);
  const Header header = transmitted(connection, *ends.server, large);
  EXPECT_TRUE(header.in_memory());
  EXPECT_EQ(header.address, reinterpret_cast<std::uintptr_t>(large.tensor.const_data_ptr()));
}

TEST(ServerConnection, SendsAChecksumIfItShallCheckValues) {
  for (const bool checksums : {false, true}) {
    TwoEnds ends;
    ServerConnection connection(false, Seconds(0), checksums);
    connection.open({.channel = std::move(ends.client), .reaches_memory = true});
    for (const std::int64_t elements : {4, 1000}) {
      const Request push = push_of(elements);
      const Header header = transmitted(connection, *ends.server, push);
      EXPECT_EQ(header.summed(), checksums);
      EXPECT_EQ(header.sum(), checksums ? checksum_of(push.tensor) : 0U);
    }
  }
}

TEST(ServerConnection, LetsNoReplicatedServerWriteIntoMemory) {
  TwoEnds ends;
  ServerConnection connection(true, Seconds(60));
  connection.open({.channel = std::move(ends.client), .reaches_memory = true});
  EXPECT_TRUE(transmitted(connection, *ends.server, push_of(1000)).in_memory());
  Request exchange = push_of(1000);
  exchange.message.header.verb = Verb::kExchange;
  exchange.transfer = dense_transfer(Verb::kExchange, exchange.tensor.nbytes(), at::kLong);
  EXPECT_FALSE(transmitted(connection, *ends.server, exchange).in_memory());
}

TEST(ServerConnection, KeepsTheAddressOfTheServerAfterItIsClosed) {
  TwoEnds ends;
  ServerConnection connection(false, Seconds(0));
  EXPECT_FALSE(connection.is_open());
  connection.open({.channel = std::move(ends.client), .address = "unix:@a", .start = 7});
  EXPECT_TRUE(connection.is_open());
  connection.close();
  EXPECT_FALSE(connection.is_open());
  EXPECT_EQ(connection.address(), "unix:@a");
  EXPECT_EQ(connection.start(), 7);
}

TEST(ServerConnection, PingsASilentServerOnceAndThenReportsIt) {
  const Seconds failover(0.2);
  ServerConnection connection(true, failover);
  connection.open({});
  EXPECT_EQ(connection.due_ping(), nullptr);
  RequestPtr ping;
  while (!ping) {
    ping = connection.due_ping();
    std::this_thread::yield();
  }
  EXPECT_EQ(ping->message.header.verb, Verb::kPing);
  const auto due = after(failover);
  try {
    while (Clock::now() < due + duration_of(Seconds(10))) {
      EXPECT_EQ(connection.due_ping(), nullptr);
      std::this_thread::yield();
    }
    ADD_FAILURE() << "the silent server was not reported";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it has not answered for"), std::string::npos);
  }
}

TEST(ServerConnection, PingsAgainAfterAnAnswer) {
  const Seconds failover(0.05);
  ServerConnection connection(true, failover);
  connection.open({});
  RequestPtr first;
  while (!(first = connection.due_ping())) std::this_thread::yield();
  first->finished = true;
  connection.record_reply();
  EXPECT_EQ(connection.due_ping(), nullptr);
  RequestPtr second;
  while (!(second = connection.due_ping())) std::this_thread::yield();
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace phalanx::ps
