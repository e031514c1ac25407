// SPDX-License-Identifier: Apache-2.0
// Tests of peers that do not identify themselves, and of servers that cannot continue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/authentication.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/secret_file.h"
#include "framework/base/sockets.h"
#include "framework/comm/testing/descriptors.h"
#include "framework/ps/client/client.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/greeting.h"
#include "framework/ps/protocol/handshake.h"
#include "framework/ps/server/server.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::kSecret;
using testing::unix_address;

constexpr Seconds kLong{30};

ServerOptions options_with(AdmissionLimits limits) {
  return {.listen = {unix_address()}, .secret = kSecret, .admission = limits};
}

std::unique_ptr<Client> client_of(const Server& server, Seconds timeout = kLong) {
  return std::make_unique<Client>(
      ClientOptions{.servers = {server.addresses()}, .number = 0, .secret = kSecret, .timeout = timeout});
}

// Returns true if the other end closes the connection before the deadline.
bool is_closed(const Descriptor& socket, Seconds timeout = kLong) {
  const auto deadline = after(timeout);
  do {
    char byte = 0;
    const auto count = ::recv(socket.get(), &byte, 1, 0);
    if (count == 0 || (count < 0 && !not_ready())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < deadline);
  return false;
}

void send_all(const Descriptor& socket, const Header& header) {
  ASSERT_EQ(::send(socket.get(), &header, sizeof(header), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(header)));
}

TEST(Greeting, IsReadAsItWasWritten) {
  const Greeting greeting{.job = "a job: 1,\n",
                          .client = -1,
                          .incarnation = "f00",
                          .memory = 1,
                          .memory_check = "check",
                          .chain = {"unix:@a,10.0.0.1:7000", ""},
                          .member = 1,
                          .take_over = true,
                          .replica = true,
                          .failover = 0.1};
  const auto text = encode(greeting);
  EXPECT_EQ(encode(decode_greeting(text)), text);
  EXPECT_EQ(decode_greeting(text).job, greeting.job);
  EXPECT_EQ(decode_greeting(text).chain, greeting.chain);
  EXPECT_EQ(decode_greeting(text).failover, 0.1);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(decode_greeting(text.substr(0, size)), ConnectionError) << size;
  }
  EXPECT_THROW(decode_greeting(text + "0:,"), ConnectionError);
  EXPECT_THROW(decode_greeting("99999999999999999999:a,"), ConnectionError);
}

TEST(Greeting, SaysThatItWouldBeTooLong) {
  try {
    encode({.job = std::string(kMaxGreeting, 'j')});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shorten the name of the run"));
  }
}

TEST(Admission, NoMemoryIsTakenForALongGreeting) {
  const Server server(options_with({.greeting = kLong}));
  const auto peer = connect_to(server.addresses()[0], 10);
  send_all(peer, {.verb = Verb::kHello, .text_bytes = kMaxGreeting + 1});
  EXPECT_TRUE(is_closed(peer));
}

TEST(Admission, AMalformedGreetingEndsItsOwnConnectionOnly) {
  const Server server(options_with({.greeting = kLong}));
  for (const auto& secret : {kSecret, std::string("another secret of others")}) {
    Channel channel(connect_to(server.addresses()[0], 10), [](const Message&) { return at::Tensor(); });
    const std::atomic<bool> never = false;
    const auto say = [&](std::string text) {
      return round_trip(channel, {.header = {.verb = Verb::kHello}, .text = std::move(text)}, after(kLong), never);
    };
    const std::string own = random_text(), malformed = "no greeting";
    const std::string nonce = say(own).text;
    EXPECT_THROW(say(proof(secret, Role::kClient, own, nonce, malformed) + malformed), ConnectionError);
  }
  client_of(server);
}

TEST(Admission, ASilentConnectionEndsAtTheDeadline) {
  const Server server(options_with({.greeting = Seconds(0.05)}));
  const auto silent = connect_to(server.addresses()[0], 10), slow = connect_to(server.addresses()[0], 10);
  send_all(slow, {.verb = Verb::kHello, .text_bytes = kProofBytes});
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(slow));
}

TEST(Admission, TheDeadlineOfGreetingsDoesNotApplyToClients) {
  const Server server(options_with({.greeting = Seconds(1)}));
  const auto client = client_of(server);
  const auto silent = connect_to(server.addresses()[0], 10);
  EXPECT_TRUE(is_closed(silent));  // the silent one connected later than the client
  EXPECT_EQ(client->status().size(), 1U);
}

TEST(Admission, SilentConnectionsMakeRoomForOthers) {
  const Server server(options_with({.greeting = Seconds(1000), .pending_handshakes = 4}));
  std::vector<Descriptor> silent;
  for (int i = 0; i < 6; ++i) silent.push_back(connect_to(server.addresses()[0], 10));
  const auto client = client_of(server);
  EXPECT_EQ(client->status().size(), 1U);
  EXPECT_TRUE(is_closed(silent.front()));
}

TEST(Admission, ConnectionsBeyondTheLimitWaitUntilOthersEnd) {
  const Server server(options_with({.greeting = kLong, .connections = 1}));
  auto first = client_of(server);
  EXPECT_THROW(client_of(server, Seconds(0.3)), CommError);
  first.reset();
  EXPECT_EQ(client_of(server)->status().size(), 1U);
}

TEST(Admission, WithoutFileDescriptorsItWarnsOnceAndContinuesLater) {
  const Server server(options_with({}));
  const auto address = server.addresses()[0];
  const auto client = client_of(server);
  ::testing::internal::CaptureStderr();
  const Descriptor waiting(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage where{};
  {
    Descriptor other = connect_to(address, 10);
    socklen_t bytes = sizeof(where);
    ::getpeername(other.get(), reinterpret_cast<sockaddr*>(&where), &bytes);
    client->status();  // the server has accepted the other connection once it answers
    const phalanx::testing::NoMoreFiles none;
    ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&where), bytes), 0);
    for (int i = 0; i < 100; ++i) client->status();  // rounds of the server's loop
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("Too many open files"));
  client_of(server);
}

TEST(ServerDeathTest, AServerWhoseLoopFailsEndsItsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto serve = [] {
    const Server server(options_with({}));
    phalanx::testing::break_loops();
    (void)connect_to(server.addresses()[0], 10);
    std::this_thread::sleep_for(kLong);
  };
  EXPECT_EXIT(serve(), ::testing::ExitedWithCode(1), "parameter server: ends this process");
}

TEST(Secret, NeedsEnoughNonSpaceCharacters) {
  const std::string path = ::testing::TempDir() + "secret-" + std::to_string(::getpid());
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    return read_secret(path);
  };
  EXPECT_EQ(read(" \t0123456789abcdef \r\nmore"), "0123456789abcdef");
  for (const std::string text : {"", "0123456789abcde", "0123456789abcde            "}) {
    try {
      read(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("openssl rand -hex 32 > " + path));
    }
  }
  fs::remove(path);
  EXPECT_THROW(Server({.listen = {unix_address()}, .secret = "too short"}), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::ps
