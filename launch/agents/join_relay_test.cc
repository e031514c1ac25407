// SPDX-License-Identifier: Apache-2.0
// The test takes the places of the launcher and of the host.
#include "launch/agents/join_relay.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {
namespace {

class JoinRelay : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> launcher, host;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, launcher.data()), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, host.data()), 0);
    launcher_ = Descriptor(launcher[0]);
    host_ = Descriptor(host[0]);
    const Descriptor to_launcher(launcher[1]), to_host(host[1]);
    pid_ = ::fork();
    if (pid_ > 0) return;
    launcher_.close();
    host_.close();
    ::_exit(relay(to_launcher, to_host, "hello "));
  }

  static void send(const Descriptor& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  static std::string receive(const Descriptor& socket, std::size_t bytes) {
    std::string text(bytes, ' ');
    return ::recv(socket.get(), text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes) ? text : "";
  }

  int status() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Descriptor launcher_, host_;
  pid_t pid_ = 0;
};

TEST_F(JoinRelay, PassesOnAllTextAndEndsWithTheStatusOfTheAgent) {
  send(launcher_, "order\n");
  EXPECT_EQ(receive(host_, 12), "hello order\n");
  const std::string said = "Epoch" + status_text(130) + "1\n";
  send(host_, said);
  EXPECT_EQ(receive(launcher_, said.size()), said);
  ::shutdown(launcher_.get(), SHUT_WR);
  EXPECT_EQ(receive(host_, 1), "") << "the agent sees the end of the orders";
  host_.close();
  EXPECT_EQ(status(), 130);
}

TEST_F(JoinRelay, SaysThatTheConnectionBrokeIfTheAgentSaysNothing) {
  send(host_, "Epoch");
  EXPECT_EQ(receive(launcher_, 5), "Epoch");
  host_.close();
  EXPECT_EQ(status(), kConnectionBroke);
}

}  // namespace
}  // namespace phalanx
