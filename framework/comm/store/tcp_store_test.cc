// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/comm/store/store.h"
#include "framework/comm/testing/store.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::expect_timeout;
using testing::free_port;
using testing::keep_notes;
using testing::kLong;
using testing::kSecret;
using testing::kShort;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Listens on a port, so that no other process can have it while this object lives.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET6, SOCK_STREAM, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
    ::listen(socket_, 1);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin6_port);
  }
  ~Listener() { ::close(socket_); }
  int port() const { return port_; }

 private:
  int socket_;
  int port_;
};

// Without a secret, the server is c10d's; with one, it is a StoreServer.
class TcpStore : public ::testing::TestWithParam<bool> {
 protected:
  static StorePtr make(const std::string& host, int port, StoreHost hosted_by, int ranks, Seconds timeout = kLong) {
    const auto secret = GetParam() ? std::optional(kSecret) : std::nullopt;
    const int rank = hosted_by == StoreHost::kThisProcess ? 0 : 1;
    return make_tcp_store({host, port, hosted_by, ranks, timeout, secret, rank});
  }

  static StorePtr host(const std::string& host, int port, int ranks = 1, Seconds timeout = kLong) {
    return make(host, port, StoreHost::kThisProcess, ranks, timeout);
  }

  static StorePtr join(const std::string& host, int port, Seconds timeout = kLong) {
    return make(host, port, StoreHost::kPeer, 2, timeout);
  }

  // The two ranks of a job, the first of which hosts the store.
  static std::pair<StorePtr, StorePtr> both(const std::string& address) {
    const int port = free_port();
    auto peer = std::async(std::launch::async, [=] { return join(address, port); });
    auto server = host(address, port, 2);
    return {std::move(server), peer.get()};
  }
};

INSTANTIATE_TEST_SUITE_P(, TcpStore, ::testing::Bool(), [](const auto& secret) -> std::string {
  return secret.param ? "WithASecret" : "WithoutASecret";
});

TEST_P(TcpStore, StoresValues) {
  const auto [server, client] = both("localhost");
  keep_notes(*server, *client);
  keep_notes(*make_prefix_store("again", client), *make_prefix_store("again", server));
}

TEST_P(TcpStore, SumsOfManyThreadsAreExact) {
  constexpr int kThreads = 4, kRounds = 100;
  const auto [server, client] = both("localhost");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&store = i % 2 == 0 ? *server : *client] {
      for (int round = 0; round < kRounds; ++round) store.add("rounds", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(client->add("rounds", 0), kThreads * kRounds);
  EXPECT_EQ(server->get("rounds"), std::to_string(kThreads * kRounds));
}

TEST_P(TcpStore, StoresLongValues) {
  const auto [server, client] = both("localhost");
  const std::string value(5'000'000, 'v');
  server->set("long", value);
  EXPECT_EQ(client->get("long"), value);
}

TEST_P(TcpStore, AWaitingThreadDoesNotBlockOthers) {
  const auto store = host("localhost", free_port());
  auto waiting = std::async(std::launch::async, [&] { return store->get("key"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store->set("key", "value");
  EXPECT_EQ(waiting.get(), "value");
}

TEST_P(TcpStore, WaitsNoLongerThanItMay) { expect_timeout(*host("localhost", free_port(), 1, kShort)); }

TEST_P(TcpStore, SaysThatThePortIsTaken) {
  const Listener other;
  const auto error = comm_error_of([&] { host("localhost", other.port()); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(other.port())),
                                  HasSubstr("address already in use"), HasSubstr("MASTER_PORT")));
}

TEST_P(TcpStore, SaysThatTheServerDoesNotAnswer) {
  const testing::SilentPort silent;
  const auto error = comm_error_of([&] { join("localhost", silent.port(), Seconds(1)); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("localhost:" + std::to_string(silent.port())), HasSubstr("cannot reach")));
}

TEST_P(TcpStore, SaysThatAnAddressCannotBeResolved) {
  ::testing::internal::CaptureStderr();
  const auto error = comm_error_of([] { join("no.such.host.invalid", 29500, Seconds(1)); });
  const std::string console = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot resolve the address no.such.host.invalid ("),
                                  HasSubstr("MASTER_ADDR"), Not(HasSubstr("firewall"))));
  EXPECT_THAT(console, AllOf(HasSubstr("cannot resolve the address"), Not(HasSubstr("frame #"))));
}

TEST_P(TcpStore, OmitsStackTracesOfItsAttempts) {
  ::testing::internal::CaptureStderr();
  const auto error = comm_error_of([] { join("127.0.0.1", free_port(), Seconds(1)); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot reach it"), Not(HasSubstr("frame #")),
                                  HasSubstr("it was looked for at 127.0.0.1 through lo (127.0.0.1)")));
}

TEST_P(TcpStore, SaysHowManyRanksHaveJoined) {
  const auto error = comm_error_of([] { host("localhost", free_port(), 3, kShort); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("only 1 of 3 ranks"), HasSubstr("ranks 1, 2 are missing")));
  const auto of_two = comm_error_of([] { host("localhost", free_port(), 2, kShort); });
  EXPECT_THAT(of_two.what(), HasSubstr("; rank 1 is missing"));
}

TEST_P(TcpStore, TwoProcessesWithTheSameRankAreToldAtOnce) {
  const int port = free_port();
  auto server = std::async(std::launch::async, [port] { return host("localhost", port, 2); });
  const auto first = join("localhost", port);
  const auto error = comm_error_of([&] { join("localhost", port); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), HasSubstr("another process has joined as rank 1"));
  (void)server.get();
}

TEST_P(TcpStore, ALostServerIsALostPeer) {
  auto [server, client] = both("localhost");
  server.reset();
  for (int i = 0; i < 2; ++i) {
    const auto error = comm_error_of([&] { client->get("key"); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("get \"key\" of TCP store"), HasSubstr("the connection is lost")));
  }
}

TEST_P(TcpStore, ListensAtTheAddressThatWasAskedForOnly) {
  for (const std::string address : {"127.0.0.1", "localhost"}) {
    const int port = free_port();
    const auto store = host(address, port);
    const std::string at = ":" + std::to_string(port);
    connect_to("127.0.0.1" + at, 10);
    EXPECT_THROW(connect_to("127.0.0.2" + at, 10), ConnectionRefused) << address;
  }
}

TEST_P(TcpStore, ServesAtIpv6) {
  try {
    (void)listen_at("[::1]:0");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const auto [server, client] = both("::1");
  keep_notes(*server, *client);
}

}  // namespace
}  // namespace phalanx
