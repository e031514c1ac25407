// SPDX-License-Identifier: Apache-2.0
#include "framework/base/authenticating_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/handshake.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;
using Peer = AuthenticatingListener::Peer;

const std::string kSecret = "a secret of the tests", kOther = "another secret of others";
const HandshakeProtocol kProtocol{
    .client_opening = "test 1?", .server_opening = "test 1!", .identity = "test 1", .claim_bytes = 4};

Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string claim_of(int number) { return std::string("000") + static_cast<char>('0' + number); }

// A listener of this process, and peers that greet it in other threads.
class Listening {
 public:
  explicit Listening(const StrangerLimits& limits = {}) : Listening(listen_at("127.0.0.1:0"), limits) {}

  std::optional<Peer> next(double seconds = 30) { return listener_.next(in(seconds)); }
  Descriptor connected() const { return connect_to(address_, 10); }

  std::future<HandshakeResult> greeted(const std::string& secret, int number = 1,
                                       const HandshakeProtocol& protocol = kProtocol) const {
    return std::async(std::launch::async, [=, this] {
      TimedStream stream(connected());
      return greet(stream, protocol, secret, claim_of(number), in(30));
    });
  }

 private:
  Listening(Descriptor listener, const StrangerLimits& limits)
      : address_(address_of(listener.get())), listener_("the test", std::move(listener), kProtocol, kSecret, limits) {}

  std::string address_;
  AuthenticatingListener listener_;
};

void send(const Descriptor& socket, const std::string& text) {
  ASSERT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

bool is_closed(const Descriptor& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.get(), &byte, 1, 0);
  return count == 0 || (count < 0 && !not_ready());
}

TEST(AuthenticatingListener, APeerWithTheSecretIsAdmittedWithItsClaim) {
  Listening listening;
  auto first = listening.greeted(kSecret, 1);
  const auto peer = listening.next();
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->claim, "0001");
  EXPECT_EQ(first.get(), HandshakeResult::kAdmitted);
}

TEST(AuthenticatingListener, TheFirstBytesAfterTheHandshakeAreLeftToItsUser) {
  Listening listening;
  auto client = std::async(std::launch::async, [&] {
    TimedStream stream(listening.connected());
    EXPECT_EQ(greet(stream, kProtocol, kSecret, "0001", in(30)), HandshakeResult::kAdmitted);
    stream.send("data", in(30));
    return stream.receive(3, in(30));
  });
  auto peer = listening.next();
  ASSERT_TRUE(peer);
  TimedStream stream(std::move(peer->socket));
  EXPECT_EQ(stream.receive(4, in(30)), "data");
  stream.send("end", in(30));
  EXPECT_EQ(client.get(), "end");
}

TEST(AuthenticatingListener, NobodyIsAdmittedAtTheDeadline) {
  Listening listening;
  const auto silent = listening.connected();
  EXPECT_FALSE(listening.next(0.1));
}

TEST(AuthenticatingListener, AWrongSecretIsRefusedAndOthersAreAdmitted) {
  Listening listening;
  ::testing::internal::CaptureStderr();
  std::vector<std::future<HandshakeResult>> wrong;
  for (int i = 0; i < 5; ++i) wrong.push_back(listening.greeted(kOther));
  EXPECT_FALSE(listening.next(0.5));
  for (auto& one : wrong) EXPECT_EQ(one.get(), HandshakeResult::kRefused);
  auto right = listening.greeted(kSecret);
  EXPECT_TRUE(listening.next());
  EXPECT_EQ(right.get(), HandshakeResult::kAdmitted);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the test: the connection of 127.0.0.1:"));
  EXPECT_EQ(log.find("it does not know the secret"), log.rfind("it does not know the secret")) << "one line: " << log;
}

TEST(AuthenticatingListener, AProofForAnotherProtocolIsWorthless) {
  Listening listening;
  HandshakeProtocol other = kProtocol;
  other.identity = "another";
  auto client = listening.greeted(kSecret, 1, other);
  EXPECT_FALSE(listening.next(0.3));
  EXPECT_EQ(client.get(), HandshakeResult::kRefused);
}

TEST(AuthenticatingListener, AReplayedGreetingIsRefused) {
  Listening listening;
  std::string hello, proof_sent;
  {
    const auto socket = listening.connected();
    const std::string nonce = random_text();
    hello = kProtocol.client_opening + nonce + "0001";
    send(socket, hello);
    EXPECT_FALSE(listening.next(0.1));
    std::string answer(kProtocol.server_hello_bytes(), '\0');
    ASSERT_EQ(::recv(socket.get(), answer.data(), answer.size(), 0), static_cast<ssize_t>(answer.size()));
    proof_sent = proof(kSecret, Role::kClient, nonce, answer.substr(kProtocol.server_opening.size()), "test 10001");
    send(socket, proof_sent);
    ASSERT_TRUE(listening.next()) << "the recorded greeting was a good one";
  }
  const auto again = listening.connected();
  send(again, hello + proof_sent);
  EXPECT_FALSE(listening.next(0.2));
  std::string answer(kProtocol.server_hello_bytes() + kProofBytes, '\0');
  ASSERT_EQ(::recv(again.get(), answer.data(), answer.size(), 0), static_cast<ssize_t>(answer.size()));
  EXPECT_TRUE(answer.ends_with(kRefusal));
  EXPECT_TRUE(is_closed(again));
}

TEST(AuthenticatingListener, AnotherProtocolIsRefusedAtItsFirstBytes) {
  Listening listening;
  const auto http = listening.connected();
  send(http, "GE");
  EXPECT_FALSE(listening.next(0.2));
  EXPECT_TRUE(is_closed(http));
}

TEST(AuthenticatingListener, SilentPeersDoNotKeepOthersOutAndAreDropped) {
  Listening listening({.greeting = std::chrono::duration<double>(0.2), .pending = 4});
  std::vector<Descriptor> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(listening.connected());
  auto peer = listening.greeted(kSecret);
  EXPECT_TRUE(listening.next());
  EXPECT_EQ(peer.get(), HandshakeResult::kAdmitted);
  EXPECT_TRUE(is_closed(silent.front()));
}

// Without the greeting time, only newcomers replace silent peers.
TEST(AuthenticatingListener, ANewcomerReplacesAPeerThatHasBeenSilent) {
  Listening listening({.greeting = std::chrono::hours(1), .pending = 1});
  const auto silent = listening.connected();
  EXPECT_FALSE(listening.next(0.1));
  auto peer = listening.greeted(kSecret);
  EXPECT_TRUE(listening.next());
  EXPECT_TRUE(is_closed(silent));
  EXPECT_EQ(peer.get(), HandshakeResult::kAdmitted);
}

TEST(AuthenticatingListener, AServerWithoutTheSecretIsAnImpostor) {
  const Descriptor listener = listen_at("127.0.0.1:0");
  auto client = std::async(std::launch::async, [&] {
    TimedStream stream(connect_to(address_of(listener.get()), 10));
    return greet(stream, kProtocol, kSecret, "0001", in(30));
  });
  Descriptor socket;
  while (!socket.valid()) socket = accept_from(listener.get());
  TimedStream server(std::move(socket));
  const std::string hello = server.receive(kProtocol.client_hello_bytes(), in(30));
  // The best that it can do is to send the client's own words back.
  server.send(kProtocol.server_opening + hello.substr(kProtocol.client_opening.size(), kProofBytes), in(30));
  server.send(server.receive(kProofBytes, in(30)), in(30));
  EXPECT_EQ(client.get(), HandshakeResult::kImpostor);
}

}  // namespace
}  // namespace phalanx
