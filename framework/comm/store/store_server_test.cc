// SPDX-License-Identifier: Apache-2.0
// Tests with peers that do not know the secret, and with servers that fail.
#include "framework/comm/store/store_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/authentication.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/comm/store/store.h"
#include "framework/comm/store/store_client.h"
#include "framework/comm/store/store_protocol.h"
#include "framework/comm/testing/descriptors.h"
#include "framework/comm/testing/store.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::kLong;
using testing::kSecret;

using ::testing::AllOf;
using testing::free_port;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

const std::string kOther = "another secret of others";

int port_of(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

// A server in this process, at a port that the system has chosen.
class Served {
 public:
  explicit Served(const StoreLimits& limits = {}) : Served(listen_at("127.0.0.1:0"), limits) {}

  int port() const { return port_of(address_); }
  Descriptor connected() const { return connect_to(address_, 10); }
  StorePtr join(Seconds timeout = kLong, const std::string& secret = kSecret) const {
    return connect_to_store("the store", "127.0.0.1", port(), secret, timeout);
  }

 private:
  Served(Descriptor listener, const StoreLimits& limits)
      : address_(address_of(listener.get())),
        server_(std::make_unique<StoreServer>("the store", std::move(listener), kSecret, limits)) {}

  std::string address_;
  std::unique_ptr<StoreServer> server_;
};

void send(const Descriptor& socket, const std::string& text) {
  ASSERT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// Returns the bytes that arrived before the other end closed the connection, or `bytes` bytes.
std::string receive(const Descriptor& socket, std::size_t bytes) {
  std::string text;
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (text.size() < bytes && Clock::now() < deadline) {
    char byte = 0;
    const auto count = ::recv(socket.get(), &byte, 1, 0);
    if (count == 1) text += byte;
    if (count == 0 || (count < 0 && !not_ready())) return text;
    if (count < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(text.size(), bytes) << "the connection is still open";
  return text;
}

bool is_closed(const Descriptor& socket) { return receive(socket, 1).empty(); }

// Greets as a client with this secret, and returns the server's verdict.
std::string greet(const Descriptor& socket, const std::string& secret) {
  const std::string nonce = random_text();
  send(socket, std::string(kClientOpening) + nonce);
  const std::string servers = receive(socket, kHelloBytes).substr(kServerOpening.size());
  send(socket, proof(secret, Role::kClient, nonce, servers, kStoreIdentity));
  return receive(socket, kProofBytes);
}

// Accepts a client, and greets it as a server with this secret. Returns the connection.
Descriptor greet_client(const Descriptor& listener, const std::string& secret) {
  Descriptor socket;
  while (!socket.valid()) socket = accept_from(listener.get());
  const std::string clients = receive(socket, kHelloBytes).substr(kClientOpening.size()), nonce = random_text();
  send(socket, std::string(kServerOpening) + nonce);
  receive(socket, kProofBytes);
  send(socket, proof(secret, Role::kServer, clients, nonce, kStoreIdentity));
  return socket;
}

std::string header(StoreVerb verb, std::uint32_t key_bytes, std::int64_t argument) {
  const RequestHeader header{.verb = verb, .key_bytes = key_bytes, .argument = argument};
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header));
}

TEST(StoreClient, AWrongSecretIsRefusedAtOnce) {
  const Served served;
  ::testing::internal::CaptureStderr();
  const auto begin = Clock::now();
  const auto error = comm_error_of([&] { served.join(kLong, kOther); });
  EXPECT_LT(Clock::now() - begin, kLong / 2);
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  const auto names_no_secret = AllOf(HasSubstr("PHALANX_JOB_SECRET"), Not(HasSubstr(kOther)), Not(HasSubstr(kSecret)));
  EXPECT_THAT(error.what(), names_no_secret);
  served.join()->set("key", "value");  // after this, the server has written its line
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("127.0.0.1:"), names_no_secret));
}

TEST(StoreClient, AServerThatDoesNotKnowTheSecretIsRefusedAtOnce) {
  const auto listener = listen_at("127.0.0.1:0");
  const int port = port_of(address_of(listener.get()));
  auto joining = std::async(std::launch::async, [port] {
    return comm_error_of([port] { connect_to_store("the store", "127.0.0.1", port, kSecret, kLong); });
  });
  const auto connection = greet_client(listener, kOther);
  const auto error = joining.get();
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("does not know this job's secret"), HasSubstr("PHALANX_JOB_SECRET")));
}

TEST(StoreClient, WaitsForItsServer) {
  const int port = free_port();
  auto joining = std::async(std::launch::async,
                            [port] { return connect_to_store("the store", "127.0.0.1", port, kSecret, kLong); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const StoreServer server("the store", listen_at("127.0.0.1:" + std::to_string(port)), kSecret);
  EXPECT_EQ(joining.get()->add("count", 1), 1);
}

TEST(StoreClient, RefusesWhatTheServerWouldRefuse) {
  const Served served;
  const auto store = served.join();
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { store->set(std::string(kMaxKeyBytes + 1, 'k'), ""); },
           [&] { store->get(std::string(kMaxKeyBytes + 1, 'k')); },
           [&] { store->set("key", std::string(kMaxValueBytes + 1, 'v')); },
       }) {
    EXPECT_THAT(comm_error_of(call).what(), AllOf(HasSubstr("bytes"), HasSubstr("the store")));
  }
  const std::string key(kMaxKeyBytes, 'k'), value(kMaxValueBytes, 'v');
  store->set(key, value);
  EXPECT_EQ(store->get(key), value);
  EXPECT_THAT(comm_error_of([&] { store->add(key, 1); }).what(), HasSubstr("not a number"));
  EXPECT_EQ(store->add("count", std::numeric_limits<std::int64_t>::max()), std::numeric_limits<std::int64_t>::max());
}

TEST(StoreClient, AServerThatStopsAnsweringIsATimeout) {
  const auto listener = listen_at("127.0.0.1:0");
  const int port = port_of(address_of(listener.get()));
  auto joining = std::async(std::launch::async,
                            [port] { return connect_to_store("the store", "127.0.0.1", port, kSecret, Seconds(0.5)); });
  const auto connection = greet_client(listener, kSecret);
  const auto store = joining.get();
  const auto error = comm_error_of([&] { store->get("key"); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("get \"key\" of the store"), HasSubstr("does not answer")));
  EXPECT_EQ(comm_error_of([&] { store->get("key"); }).kind(), CommError::Kind::kPeerLost);
}

TEST(StoreClient, SaysThatTheListeningProcessDoesNotAnswer) {
  const auto silent = listen_at("127.0.0.1:0");  // the system completes connections, but no one accepts them
  const std::string address = address_of(silent.get());
  const int port = port_of(address);
  const auto error =
      comm_error_of([&] { make_tcp_store({"127.0.0.1", port, StoreHost::kPeer, 2, Seconds(0.3), kSecret}); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(address), HasSubstr("waited 0.3 s"), HasSubstr("does not answer as")));
}

// Ranks disagree about the existence of a secret.
TEST(StoreClient, ARankWithoutASecretIsToldThatRankZeroHasOne) {
  const Served served;
  const auto error =
      comm_error_of([&] { make_tcp_store({"127.0.0.1", served.port(), StoreHost::kPeer, 2, Seconds(1)}); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("PHALANX_JOB_SECRET"), HasSubstr("does not answer as")));
}

TEST(StoreClient, RankZeroSaysThatRanksMayLackTheSecret) {
  const auto error = comm_error_of(
      [] { make_tcp_store({"127.0.0.1", free_port(), StoreHost::kThisProcess, 2, Seconds(0.1), kSecret}); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("only 1 of 2 ranks"), HasSubstr("PHALANX_JOB_SECRET")));
}

TEST(StoreClient, ARankWithASecretIsToldThatRankZeroMayHaveNone) {
  const int port = free_port();
  const auto server = make_tcp_store({"127.0.0.1", port, StoreHost::kThisProcess, 1, kLong});
  const auto error =
      comm_error_of([&] { make_tcp_store({"127.0.0.1", port, StoreHost::kPeer, 2, Seconds(0.5), kSecret}); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("PHALANX_JOB_SECRET"), HasSubstr(std::to_string(port))));
}

TEST(StoreClient, AShortSecretIsRefused) {
  EXPECT_THROW(make_tcp_store({"127.0.0.1", free_port(), StoreHost::kThisProcess, 1, kLong, "fifteen letters"}),
               ConfigError);
}

TEST(StoreServer, ListensAtAllAddressesForAHostThatIsNotThisMachine) {
  const int port = free_port();
  const std::string at = ":" + std::to_string(port);
  auto hosting = std::async(std::launch::async, [port] {
    return comm_error_of(
        [port] { make_tcp_store({"no.such.host.invalid", port, StoreHost::kThisProcess, 1, Seconds(2), kSecret}); });
  });
  const auto reached = [](const std::string& address) {
    try {
      return connect_to(address, 10).valid();
    } catch (const CannotConnect&) {
      return false;
    }
  };
  while (!reached("127.0.0.1" + at)) {
    ASSERT_NE(hosting.wait_for(std::chrono::milliseconds(5)), std::future_status::ready);
  }
  EXPECT_TRUE(reached("127.0.0.2" + at));
  EXPECT_THAT(hosting.get().what(), HasSubstr("cannot resolve the address"));
}

TEST(StoreServer, AnUnauthenticatedPeerThatSendsSomethingElseIsDisconnected) {
  const Served served;
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\0\xce\xf7\x85\x3c", 5), std::string(1'000'000, 'x')}) {
    const auto peer = served.connected();
    (void)!::send(peer.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(is_closed(peer));
  }
  EXPECT_EQ(served.join()->add("count", 1), 1);
}

TEST(StoreServer, NothingButTheGreetingIsReadFromAnUnauthenticatedPeer) {
  const Served served;
  const auto peer = served.connected();
  send(peer, std::string(kClientOpening) + random_text());
  receive(peer, kHelloBytes);
  send(peer,
       header(StoreVerb::kSet, 3, std::numeric_limits<std::int64_t>::max()) + "key" + std::string(kProofBytes, 'x'));
  EXPECT_EQ(receive(peer, kProofBytes), kRefusal);
  EXPECT_TRUE(is_closed(peer));
  EXPECT_EQ(served.join()->add("key", 1), 1);
}

TEST(StoreServer, AReplayedGreetingIsRefused) {
  const Served served;
  const auto first = served.connected();
  const std::string hello = std::string(kClientOpening) + random_text();
  send(first, hello);
  const std::string servers = receive(first, kHelloBytes).substr(kServerOpening.size());
  const std::string recorded =
      proof(kSecret, Role::kClient, hello.substr(kClientOpening.size()), servers, kStoreIdentity);
  send(first, recorded);
  EXPECT_NE(receive(first, kProofBytes), kRefusal);
  const auto second = served.connected();
  send(second, hello);
  receive(second, kHelloBytes);
  send(second, recorded);
  EXPECT_EQ(receive(second, kProofBytes), kRefusal);
  EXPECT_TRUE(is_closed(second));
}

TEST(StoreServer, AProofOfTheServerIsNotAcceptedFromAClient) {
  const Served served;
  const auto peer = served.connected();
  const std::string nonce = random_text();
  send(peer, std::string(kClientOpening) + nonce);
  const std::string servers = receive(peer, kHelloBytes).substr(kServerOpening.size());
  send(peer, proof(kSecret, Role::kServer, nonce, servers, kStoreIdentity));
  EXPECT_EQ(receive(peer, kProofBytes), kRefusal);
}

TEST(StoreServer, AMalformedRequestEndsItsOwnConnectionOnly) {
  const Served served;
  const auto store = served.join();
  for (const auto& request : {
           header(static_cast<StoreVerb>(77), 3, 0),
           header(StoreVerb::kSet, 3, kMaxValueBytes + 1),
           header(StoreVerb::kSet, 3, -1),
           header(StoreVerb::kGet, kMaxKeyBytes + 1, 0),
           header(StoreVerb::kAdd, std::numeric_limits<std::uint32_t>::max(), 0),
       }) {
    const auto peer = served.connected();
    EXPECT_NE(greet(peer, kSecret), kRefusal);
    send(peer, request);
    EXPECT_TRUE(is_closed(peer));
  }
  EXPECT_EQ(store->add("count", 1), 1);
}

TEST(StoreServer, ARequestMayArriveByteByByte) {
  const Served served;
  const auto peer = served.connected();
  greet(peer, kSecret);
  for (const char byte : header(StoreVerb::kSet, 3, 5) + "keyvalue" + header(StoreVerb::kGet, 3, 0) + "key") {
    send(peer, std::string(1, byte));
  }
  EXPECT_EQ(receive(peer, 2 * sizeof(ReplyHeader) + 5).substr(2 * sizeof(ReplyHeader)), "value");
}

TEST(StoreServer, ConnectionsThatDoNotGreetEndAtTheDeadline) {
  const Served served({.greeting = Seconds(0.05)});
  const auto silent = served.connected(), half = served.connected(), late = served.connected();
  send(half, std::string(kClientOpening) + "0123");
  send(late, std::string(kClientOpening) + random_text());
  for (const auto* one : {&silent, &half}) EXPECT_TRUE(is_closed(*one));
  receive(late, kHelloBytes);
  EXPECT_TRUE(is_closed(late));
}

TEST(StoreServer, TheDeadlineOfGreetingsDoesNotApplyToRanks) {
  const Served served({.greeting = Seconds(0.5)});
  const auto store = served.join();
  EXPECT_TRUE(is_closed(served.connected()));  // this connection is newer than the rank's
  EXPECT_EQ(store->add("count", 1), 1);
}

TEST(StoreServer, SilentConnectionsMakeRoomForRanks) {
  const Served served({.greeting = Seconds(1000), .pending_handshakes = 64});
  std::vector<Descriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(served.connected());
  const auto one = served.join(), other = served.join();
  EXPECT_EQ(one->add("count", 1), 1);
  EXPECT_EQ(other->add("count", 1), 2);
  EXPECT_TRUE(is_closed(silent.front()));
}

TEST(StoreServer, MoreConnectionsThanAreAllowedWaitForOthersToEnd) {
  const Served served({.connections = 1});
  auto first = served.join();
  EXPECT_EQ(comm_error_of([&] { served.join(Seconds(0.3)); }).kind(), CommError::Kind::kTimeout);
  first.reset();
  EXPECT_EQ(served.join()->add("count", 1), 1);
}

TEST(StoreServer, WithoutFileDescriptorsItWarnsOnceAndContinuesLater) {
  const Served served;
  const auto store = served.join();
  const Descriptor waiting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage where{};
  socklen_t bytes = sizeof(where);
  {
    const auto other = served.connected();
    ::getpeername(other.get(), reinterpret_cast<sockaddr*>(&where), &bytes);
    greet(other, kSecret);  // after this, the server has accepted it
    ::testing::internal::CaptureStderr();
    const testing::NoMoreFiles none;
    ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&where), bytes), 0);
    for (int i = 0; i < 100; ++i) store->add("count", 1);  // rounds of the server's loop
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("Too many open files"));
  EXPECT_EQ(served.join()->add("count", 0), 100);
}

TEST(StoreServer, AServerWhoseLoopFailsClosesEverything) {
  const Served served;
  const auto store = served.join();
  ::testing::internal::CaptureStderr();
  testing::break_loops();
  EXPECT_EQ(comm_error_of([&] {
              while (true) store->get("key");
            }).kind(),
            CommError::Kind::kPeerLost);
  EXPECT_EQ(comm_error_of([&] { served.join(Seconds(0.3)); }).kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the store: the server ends"));
}

}  // namespace
}  // namespace phalanx
