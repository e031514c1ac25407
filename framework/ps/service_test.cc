// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/testing/service.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"

namespace phalanx::ps {
namespace {

using enum testing::Rule;
using testing::kSecret;
using testing::Service;

template <class Body>
void run_clients(int clients, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&body, i] {
      try {
        body(i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "client " << i << ": " << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

const TableSpec kFloats{.name = "t", .elements = 10, .rules = {"copy", "add", "zero", "max"}};

class ServiceOver : public ::testing::TestWithParam<const char*> {};

// The handshake with the secret is the same as over IPv4.
TEST(ServiceOverIpv6, WhatIsPushedIsPulled) {
  try {
    (void)listen_at("[::1]:0");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Service service(2, "tcp6");
  EXPECT_TRUE(service.address().starts_with("[::1]:")) << service.address();
  const auto client = service.client();
  Table table = client->create(kFloats);
  client->push(table, at::full({10}, 3.0f), {.rule = kCopy}).wait();
  auto got = at::zeros({10}, at::kFloat);
  client->pull(table, got).wait();
  EXPECT_TRUE(got.equal(at::full({10}, 3.0f)));
}

// A socket without a host accepts connections of both families.
TEST(ListenAt, AllAddressesIfThereIsNoHost) {
  const Descriptor listener = listen_at(":0");
  const std::string address = address_of(listener.get());
  const std::string port = address.substr(address.rfind(':'));
  EXPECT_TRUE(connect_to("localhost" + port, 5).valid());
}

// Ranges of elements reach the servers that hold them, with a push and with an exchange.
TEST_P(ServiceOver, RulesKeepTheirStateOfUnusedElements) {
  const Service service(3, GetParam());
  const auto client = service.client();
  for (const std::int64_t elements : {10, 100'003}) {
    Table table = client->create({.name = std::to_string(elements),
                                  .elements = elements,
                                  .rules = {"{name: dc_asgd, lambda: 0, mean_square: 0.5}"}});
    client->push(table, at::full({elements}, 2.0f), {}).wait();
    const at::Tensor none = at::zeros({elements}, at::kFloat);
    client->push(table, none, {.unused = {{1, 3}, {5, elements - 1}}}).wait();
    client->exchange(table, none, {.unused = {{0, elements}}}).wait();
    auto squares = at::zeros({elements}, at::kFloat), expected = at::full({elements}, 2.0f);
    for (const std::int64_t used : std::vector<std::int64_t>{0, 3, 4, elements - 1}) expected[used] = 1;
    client->read_state(table, 1, squares).wait();
    EXPECT_TRUE(squares.equal(expected)) << elements;
  }
}

TEST_P(ServiceOver, WhatIsPushedIsPulled) {
  const Service service(3, GetParam());
  for (const std::int64_t elements : {0, 1, 2, 10, 3000, 100'003}) {
    const auto client = service.client();
    TableSpec spec = kFloats;
    spec.name = std::to_string(elements), spec.elements = elements;
    Table table = client->create(spec);
    const auto sent = at::arange(elements, at::kFloat);
    auto got = at::full({elements}, -1, at::kFloat);
    client->push(table, sent, {.rule = kCopy}).wait();
    client->pull(table, got).wait();
    EXPECT_TRUE(got.equal(sent)) << elements;
    client->push(table, sent, {.rule = kAdd, .scale = 2}).wait();
    client->pull(table, got).wait();
    EXPECT_TRUE(got.equal(sent * 3)) << elements;
    auto both = sent.clone();
    client->exchange(table, both, {.rule = kAdd}).wait();
    EXPECT_TRUE(both.equal(sent * 4)) << elements;
  }
}

TEST_P(ServiceOver, AHundredRoundsOfClientsThatAddLoseNothing) {
  constexpr int kClients = 4, kRounds = 100;
  const std::int64_t elements = 911 * 101;
  const Service service(3, GetParam());
  TableSpec spec = kFloats;
  spec.elements = elements, spec.dtype = "int64";
  run_clients(kClients, [&](int number) {
    const auto client = service.client(number);
    Table table = client->create(spec);
    const auto mine = at::full({elements}, number + 1, at::kLong);
    for (int round = 0; round < kRounds; ++round) client->push(table, mine, {.rule = kAdd}).wait();
  });
  const auto client = service.client();
  Table table = client->create(spec);
  auto sum = at::zeros({elements}, at::kLong);
  client->pull(table, sum).wait();
  EXPECT_TRUE(sum.equal(at::full({elements}, kRounds * kClients * (kClients + 1) / 2, at::kLong)));
}

TEST_P(ServiceOver, ManyRequestsMayBeInFlightAtOnce) {
  const Service service(2, GetParam());
  const auto client = service.client();
  TableSpec spec = kFloats;
  spec.elements = 200'000;
  Table table = client->create(spec);
  const auto ones = at::full({spec.elements}, 1, at::kFloat);
  std::vector<at::Tensor> got;
  std::vector<Work> works;
  for (int i = 0; i < 20; ++i) {
    works.push_back(client->push(table, ones, {.rule = kAdd}));
    got.push_back(at::zeros_like(ones));
    works.push_back(client->pull(table, got.back()));
  }
  wait_all(works);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(got[i].equal(ones * (i + 1))) << i;
}

TEST_P(ServiceOver, BulkSynchronousClientsReadTheSameValues) {
  constexpr int kClients = 3, kSteps = 20;
  const Service service(2, GetParam());
  TableSpec spec = kFloats;
  spec.elements = 1001, spec.dtype = "int64", spec.clients = kClients, spec.staleness = 0;
  run_clients(kClients, [&](int number) {
    const auto client = service.client(number);
    Table table = client->create(spec);
    auto values = at::zeros({spec.elements}, at::kLong);
    for (int step = 0; step < kSteps; ++step) {
      client->pull(table, values).wait();
      // The others may be one clock ahead and have pushed for it, but not two.
      const auto least = values.min().item<std::int64_t>();
      EXPECT_GE(least, step * kClients);
      EXPECT_LT(values.max().item<std::int64_t>(), (step + 1) * kClients);
      client->push(table, at::full({spec.elements}, 1, at::kLong), {.rule = kAdd, .tick = true}).wait();
    }
    EXPECT_EQ(table.clock(), kSteps);
    EXPECT_GT(table.staleness_seen()[0], 0);
    client->pull(table, values).wait();
    EXPECT_EQ(values.min().item<std::int64_t>(), kSteps * kClients);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, ServiceOver, ::testing::Values("unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Service, RefusesAClientThatDoesNotKnowTheSecret) {
  Service service(1, "tcp");
  EXPECT_THROW(Client({.servers = {{service.address()}}, .secret = "another", .timeout = Seconds(10)}), CommError);
  service.client();  // other clients are still admitted
}

TEST(Service, SaysWhatTheServerRefused) {
  const Service service(1, "unix");
  const auto client = service.client();
  TableSpec spec = kFloats;
  spec.rules = {"ad"};
  try {
    client->create(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"add\""), std::string::npos) << error.what();
  }
  Table table = client->create(kFloats);
  EXPECT_THROW(static_cast<void>(client->push(table, at::zeros({11}), {})), std::invalid_argument);
  Work push = client->push(table, at::zeros({10}), {.rule = 17});
  EXPECT_THROW(push.wait(), Error);
}

TEST(Service, AServerThatEndsIsNamed) {
  Service service(2, "tcp");
  const auto client = service.client();
  Table table = client->create(kFloats);
  const std::string address = service.servers()[1]->addresses()[0];
  service.servers().pop_back();
  auto values = at::zeros({10});
  try {
    client->pull(table, values).wait();
    FAIL();
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_NE(std::string(error.what()).find(address), std::string::npos) << error.what();
  }
}

TEST(Service, ABlockedReadEndsAtTheDeadline) {
  const Service service(1, "unix");
  const auto client = service.client(0, Seconds(2));  // long enough to connect on a busy machine
  TableSpec spec = kFloats;
  spec.clients = 2, spec.staleness = 0;
  Table table = client->create(spec);
  auto values = at::zeros({10});
  client->push(table, values, {.rule = kAdd, .tick = true}).wait();
  try {
    client->pull(table, values).wait();
    FAIL();
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
    EXPECT_NE(std::string(error.what()).find("pull from table \"t\""), std::string::npos) << error.what();
  }
}

TEST(Service, AClientThatDiesIsNotWaitedFor) {
  const Service service(1, "unix");
  TableSpec spec = kFloats;
  spec.clients = 2, spec.staleness = 0;
  const auto client = service.client(0);
  Table table = client->create(spec);
  auto dying = service.client(1);
  dying->create(spec);
  auto values = at::zeros({10});
  client->push(table, values, {.rule = kAdd, .tick = true}).wait();
  Work read = client->pull(table, values);
  dying.reset();
  read.wait();
}

TEST(Service, SurvivesMalformedRequests) {
  const Service service(1, "tcp");
  const auto client = service.client();
  Table table = client->create(kFloats);
  const std::string address = service.address();
  std::uint64_t random = 1;
  for (int i = 0; i < 1000; ++i) {
    const Descriptor socket = connect_to(address, 10);
    Header header{.verb = static_cast<Verb>(i % 12), .id = 1, .table = 1};
    if (i % 3 == 0) header.magic = static_cast<std::uint32_t>(i);
    if (i % 5 == 0) header.text_bytes = 0xffffffff;
    if (i % 7 == 0) header.payload_bytes = ~std::uint64_t{0};
    if (i % 2 == 0) header.flags = kInMemory, header.address = 1;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    for (auto& byte : bytes) {
      random = random * 6364136223846793005 + 1442695040888963407;
      if (random >> 61 == 0) byte = static_cast<char>(random >> 33);
    }
    (void)::send(socket.get(), bytes.data(), i % 11 == 0 ? bytes.size() / 2 : bytes.size(), MSG_NOSIGNAL);
  }
  auto values = at::full({10}, 1, at::kFloat);
  client->exchange(table, values, {.rule = kAdd}).wait();
  EXPECT_TRUE(values.equal(at::full({10}, 1, at::kFloat)));
}

// A state with one number per element is divided like the values. A state with one number per shard has one element per
// server.
TEST(StateOfRules, IsReadAndWrittenThroughTheClient) {
  for (const int servers : {1, 2}) {
    const testing::Service service(servers, "unix");
    const auto client = service.client();
    Table table = client->create(
        {.name = "t", .elements = 5000, .rules = {"{name: dc_asgd, lambda: 1, mean_square: 0.5}", "sum_of_clock"}});
    client->push(table, at::full({5000}, 2.0), {.scale = 0.1}).wait();
    at::Tensor squares = at::zeros({5000}), clocks = at::zeros({servers}, at::kLong);
    client->read_state(table, 1, squares).wait();
    EXPECT_TRUE(at::equal(squares, at::full({5000}, 2.0)));
    client->read_state(table, 2, clocks).wait();
    EXPECT_TRUE(at::equal(clocks, at::full({servers}, -1, at::kLong)));
    const at::Tensor others = at::arange(5000, at::kFloat);
    client->write_state(table, 1, others).wait();
    client->read_state(table, 1, squares).wait();
    EXPECT_TRUE(at::equal(squares, others));
    EXPECT_THROW(client->read_state(table, 3, squares).wait(), Error) << "there is no tensor 3";
    EXPECT_THROW(client->write_state(table, 2, others).wait(), Error) << "the tensor has another size";
    client->read_state(table, 1, squares).wait();  // the connection still works
  }
}

}  // namespace
}  // namespace phalanx::ps
