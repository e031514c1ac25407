// SPDX-License-Identifier: Apache-2.0
// Scripts take the place of srun and the agent; the test takes that of the launcher.
#include "launch/agents/command_relay.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "framework/testing/scratch.h"
#include "launch/agents/join_relay.h"
#include "launch/exit_status.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using testing::becomes_true;

class CommandRelay : public ::testing::Test {
 protected:
  // Starts the process that runs a script as its command.
  void start(const std::string& script) {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    launcher_ = Descriptor(ends[0]);
    const Descriptor relay(ends[1]);
    pid_ = ::fork();
    if (pid_ > 0) return;
    launcher_.close();
    ::_exit(relay_command(relay, {"/bin/sh", "-c", "cd " + scratch_.folder() + "; " + script}));
  }

  // Returns all that the launcher gets until the command has ended.
  std::string output() const {
    std::string text;
    std::array<char, 256> part;
    for (ssize_t count; (count = ::read(launcher_.get(), part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  int status() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  testing::Scratch scratch_;
  Descriptor launcher_;
  pid_t pid_ = 0;
};

TEST_F(CommandRelay, HasTheStatusThatTheAgentHasSaidWhateverBecomesOfTheCommand) {
  start("read order; printf \"$order\\000status 130\\n\"; exit 1");
  ASSERT_EQ(::write(launcher_.get(), "stop\n", 5), 5);
  EXPECT_EQ(output(), "stop" + status_text(130));
  EXPECT_EQ(status(), 130);
}

TEST_F(CommandRelay, OfACommandThatEndsWithoutAWordOfTheAgentSaysThatTheConnectionBroke) {
  for (const char* end : {"exit 0", "exit 1", "kill -9 $$"}) {
    start(end);
    EXPECT_EQ(status(), kConnectionBroke) << end;
  }
}

TEST_F(CommandRelay, PassesOnThatAnAgentCannotBegin) {
  start("exit 2");
  EXPECT_EQ(status(), kUsage);
}

TEST_F(CommandRelay, EndsItsCommandWhenItIsKilled) {
  start("trap 'echo > ended; exit 0' TERM; echo > ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(becomes_true([&] { return !testing::text_of(scratch_.path("ready")).empty(); }));
  ::kill(pid_, SIGKILL);
  EXPECT_TRUE(becomes_true([&] { return !testing::text_of(scratch_.path("ended")).empty(); }));
  EXPECT_EQ(status(), -1);
}

}  // namespace
}  // namespace phalanx
