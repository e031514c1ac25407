// SPDX-License-Identifier: Apache-2.0
// Scripts take the place of agents; all hosts are this one.
#include "launch/agents/launch_agents.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/agents/agent_command.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LaunchAgents : public ::testing::Test {
 protected:
  // Starts two agents with two ranks each. A script has the variable FIRST, the agent's first rank.
  Verdict launch(const std::string& script, bool goes_on = false,
                 std::chrono::nanoseconds lease = std::chrono::seconds(20), int replacements = 0) {
    const std::string first = "FIRST=${PHALANX_AGENT%% *}; cd " + scratch_.folder() + "; ";
    return run_agents({.shares = {{.host = "localhost", .first_rank = 0, .ranks = 2},
                                  {.host = "localhost", .first_rank = 2, .ranks = 2},
                                  {.host = "localhost", .first_rank = 4, .ranks = 0, .slots = 1}},
                       .log_folder = scratch_.folder(),
                       .pass_variables = {"WITH_*"},
                       .command = {"sh", "-c", first + script},
                       .goes_on = goes_on,
                       .lease = lease,
                       .replacements = replacements});
  }

  std::string text(const std::string& name) const { return read_file(scratch_.path(name)); }

  testing::Scratch scratch_;
};

TEST_F(LaunchAgents, PassesOrdersAndVariablesOn) {
  ::setenv("WITH_SPACES", "two words, and a 'quote'", 1);
  EXPECT_EQ(launch("echo \"$PHALANX_AGENT|$WITH_SPACES|$PHALANX_TERMINAL\" >order$FIRST").status, kDone);
  ::unsetenv("WITH_SPACES");
  EXPECT_THAT(text("order0"), AllOf(::testing::StartsWith("0 2 4 file:///"), HasSubstr("/rendezvous/store|"),
                                    HasSubstr("|two words, and a 'quote'|")));
  EXPECT_THAT(text("order2"), ::testing::StartsWith("2 2 4 file:///"));
}

TEST_F(LaunchAgents, RefusesAVariableOfSeveralLines) {
  ::setenv("WITH_LINES", "one\ntwo", 1);
  EXPECT_THAT([&] { launch("true"); }, ThrowsMessage<ConfigError>(HasSubstr("WITH_LINES: has several lines")));
  ::unsetenv("WITH_LINES");
}

TEST_F(LaunchAgents, EndsTheOthersWhenARankHasEndedTheJob) {
  write_failure(scratch_.folder(), {.rank = 3, .message = "an old failure"});
  const std::string failure = R"({\"rank\":2,\"host\":\"b\",\"log\":\"\",\"message\":\"out of paper\",)"
                              R"(\"secondary\":false,\"time\":1,\"status\":0})";
  const auto verdict = launch("if [ $FIRST = 2 ]; then echo \"" + failure +
                              "\" >rank2.failure; exit 1; fi; read order; echo $order >told");
  EXPECT_EQ(verdict.status, kFailed);
  ASSERT_TRUE(verdict.cause);
  EXPECT_EQ(verdict.cause->rank, 2);
  EXPECT_EQ(verdict.cause->message, "out of paper");
  EXPECT_EQ(text("told"), "end\n");
}

TEST_F(LaunchAgents, SaysIfAHostCannotBeUsed) {
  const auto verdict = launch("[ $FIRST = 0 ] || exit 127; read order");
  EXPECT_EQ(verdict.status, kRankDied);
  ASSERT_TRUE(verdict.cause);
  EXPECT_THAT(verdict.cause->message,
              HasSubstr("Its ranks have left no reason: the agent there ended with status 127."));
  EXPECT_FALSE(verdict.cause->spares_host);
}

// The script ends as an agent whose lease is over.
TEST_F(LaunchAgents, AHostThatHasHeardNothingIsNotBlamed) {
  const auto verdict = launch("[ $FIRST = 0 ] || exit 75; read order");
  EXPECT_EQ(verdict.status, kRankDied);
  ASSERT_TRUE(verdict.cause);
  EXPECT_THAT(verdict.cause->message, HasSubstr("the agent there heard nothing from the launcher for 20.0 s"));
  EXPECT_TRUE(verdict.cause->spares_host);
  const auto without_others = launch("touch training.begun; exit 75", /*goes_on=*/true);
  ASSERT_TRUE(without_others.cause);
  EXPECT_TRUE(without_others.cause->spares_host);
}

TEST_F(LaunchAgents, AStatusOfSshSaysThatTheConnectionBrokeOrTheAgentWasKilled) {
  const auto verdict = launch("[ $FIRST = 0 ] || exit 255; read order");
  ASSERT_TRUE(verdict.cause);
  EXPECT_THAT(verdict.cause->message, HasSubstr("the connection to it broke, or the agent there was killed"));
}

TEST(AgentScript, StartsNothingIfItsInputEndsBeforeTheEmptyLine) {
  const testing::Scratch scratch;
  const auto run = [&](const std::string& input) {
    const std::string script = agent_script(scratch.folder(), {"/bin/sh", "-c", "echo \"$A\" >started"});
    ::setenv("AGENT_INPUT", input.c_str(), 1);
    ::setenv("AGENT_SCRIPT", script.c_str(), 1);
    const int status = std::system("printf \"$AGENT_INPUT\" | /bin/sh -c \"$AGENT_SCRIPT\"");
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(run(""), 1);
  EXPECT_EQ(run("A=1\n"), 1);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("started")));
  EXPECT_EQ(run("A=1\n\n"), 0);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("started")));
}

TEST_F(LaunchAgents, GoesOnWithoutAHostThatIsLost) {
  // The agent of rank 0 is there until the ranks of the other host have been noted as lost.
  const std::string script =
      "touch training.begun; if [ $FIRST = 2 ]; then kill -9 $$; fi;"
      "until [ -e rank2.failure ] && [ -e rank3.failure ]; do sleep 0.01; done; cat rank2.failure >reason;"
      "mv rank2.failure rank2.lost; mv rank3.failure rank3.lost; sleep 0.3";
  const auto verdict = launch(script, /*goes_on=*/true);
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
  EXPECT_THAT(text("reason"), HasSubstr("It was on localhost, which is lost: the agent there was killed by signal 9."));
  EXPECT_TRUE(lost_ranks(scratch_.folder()).empty());
}

TEST_F(LaunchAgents, AnswersBeats) {
  EXPECT_EQ(launch("printf '\\000alive 7\\n' >&0; read order; echo $order >answer$FIRST").status, kDone);
  EXPECT_EQ(text("answer0") + text("answer2"), "alive 7\nalive 7\n");
}

TEST_F(LaunchAgents, GoesOnWithoutAHostThatIsSilent) {
  // The second agent sends one beat. The first one is there until it knows that the ranks of the other host have ended.
  const std::string script =
      "touch training.begun; if [ $FIRST = 2 ]; then printf '\\000alive 1\\n' >&0; exec sleep 60; fi;"
      "while read order; do echo $order >>orders; [ \"$order\" != 'ended 3' ] || break; done;"
      "until [ -e rank2.failure ] && [ -e rank3.failure ]; do sleep 0.01; done; cat rank2.failure >reason;"
      "mv rank2.failure rank2.lost; mv rank3.failure rank3.lost";
  const auto verdict = launch(script, /*goes_on=*/true, std::chrono::milliseconds(200));
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
  EXPECT_EQ(text("orders"), "ended 2\nended 3\n");
  EXPECT_THAT(text("reason"), HasSubstr("It was on localhost, which is lost: the host has been silent for 0."));
}

TEST_F(LaunchAgents, ASilentHostEndsTheJobIfTheOthersDoNotGoOn) {
  const auto verdict =
      launch("if [ $FIRST = 2 ]; then printf '\\000alive 1\\n' >&0; exec sleep 60; fi; read order; echo $order >told",
             /*goes_on=*/false, std::chrono::milliseconds(200));
  EXPECT_EQ(verdict.status, kRankDied);
  ASSERT_TRUE(verdict.cause);
  EXPECT_THAT(verdict.cause->message, HasSubstr("Its ranks have left no reason: the host has been silent for 0."));
  EXPECT_EQ(text("told"), "end\n");
}

TEST_F(LaunchAgents, AHostThatIsLostBeforeTrainingEndsTheJob) {
  const auto verdict = launch("if [ $FIRST = 2 ]; then kill -9 $$; fi; read order", /*goes_on=*/true);
  EXPECT_EQ(verdict.status, kRankDied);
  ASSERT_TRUE(verdict.cause);
}

TEST_F(LaunchAgents, HaveALostRankReplacedByTheAgentOfItsHost) {
  // The first agent is there until the second one has got the order. Then no process takes part any more.
  const std::string script =
      "touch training.begun; if [ $FIRST = 2 ]; then printf '\\000lost 3\\n\\000ended 2 0\\n' >&0;"
      "read order; echo $order >told; read order; echo $order >>told; exit; fi;"
      "until [ -e told ]; do sleep 0.01; done; printf '\\000ended 0 0\\n\\000ended 1 0\\n' >&0";
  EXPECT_EQ(launch(script, /*goes_on=*/true, std::chrono::seconds(20), 1).status, kDone);
  EXPECT_THAT(text("told"), ::testing::MatchesRegex("start 4 3 3 1 2 [0-9]+\nkill\n"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("meeting")));
}

TEST_F(LaunchAgents, HaveOneRankOfALostHostReplacedByASpareHostWithOneSlot) {
  const std::string script =
      "touch training.begun; case $PHALANX_AGENT in '0 0 '*) read order; echo $order >told; read order;"
      "echo $order >>told; exit;; '2 '*) kill -9 $$;; esac;"
      "until [ -e rank2.failure ] && [ -e rank3.failure ]; do sleep 0.01; done;"
      "mv rank2.failure rank2.lost; mv rank3.failure rank3.lost; until [ -e told ]; do sleep 0.01; done;"
      "printf '\\000ended 0 0\\n\\000ended 1 0\\n' >&0";
  ::testing::internal::CaptureStderr();
  const auto verdict = launch(script, /*goes_on=*/true, std::chrono::seconds(20), 3);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "No process takes the place of rank 3 yet: no host has a free slot (launch.hosts)\n");
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
  EXPECT_THAT(text("told"), ::testing::MatchesRegex("start 4 2 2 0 1 [0-9]+\nkill\n"));
}

TEST_F(LaunchAgents, GoOnIfASpareHostCannotBeUsed) {
  const std::string script =
      "touch training.begun; case $PHALANX_AGENT in '0 0 '*) exit 2;; '2 '*) kill -9 $$;; esac;"
      "until [ -e rank2.failure ] && [ -e rank3.failure ]; do sleep 0.01; done;"
      "mv rank2.failure rank2.lost; mv rank3.failure rank3.lost; until [ -e rank4.lost ]; do sleep 0.01; done;"
      "printf '\\000ended 0 0\\n\\000ended 1 0\\n' >&0";
  ::testing::internal::CaptureStderr();
  const auto verdict = launch(script, /*goes_on=*/true, std::chrono::seconds(20), 3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("Rank 4, which was to take the place of a lost one, has failed: It was on localhost, "
                              "which is lost: the agent there ended with status 2.\n"),
                    HasSubstr("No process takes the place of rank 3 yet: no host has a free slot (launch.hosts)\n")));
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
}

// Each agent tells how its ranks have ended, and then hangs until it has been silent for too long.
std::string hangs_after(const std::string& status) {
  return "touch training.begun; printf '\\000alive 1\\n' >&0;"
         "printf \"\\000ended $FIRST 0\\n\\000ended $((FIRST + 1)) " +
         status + "\\n\" >&0; exec sleep 60";
}

TEST_F(LaunchAgents, AreDoneIfAgentsHangAfterTheirRanksAreDone) {
  const auto verdict = launch(hangs_after("0"), /*goes_on=*/true, std::chrono::milliseconds(200), 1);
  EXPECT_EQ(verdict.status, kDone);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
}

TEST_F(LaunchAgents, EndAsTheirRanksDoIfAgentsHangAfterThat) {
  const auto verdict = launch(hangs_after("124"), /*goes_on=*/true, std::chrono::milliseconds(200), 1);
  EXPECT_EQ(verdict.status, kTimeUp);
  EXPECT_FALSE(verdict.cause) << verdict.cause->message;
}

TEST_F(LaunchAgents, FailIfAgentsHangAfterARankHasFailed) {
  const auto verdict = launch(hangs_after("1"), /*goes_on=*/true, std::chrono::milliseconds(200), 1);
  EXPECT_EQ(verdict.status, kRankDied);
  ASSERT_TRUE(verdict.cause);
  EXPECT_THAT(verdict.cause->message, HasSubstr("the host has been silent for 0."));
}

TEST_F(LaunchAgents, AsksThemToStop) {
  // Each agent interrupts this process once both are there.
  const std::string script =
      "touch here$FIRST; until [ -e here0 ] && [ -e here2 ]; do sleep 0.01; done;"
      "[ $FIRST = 2 ] || kill -INT " +
      std::to_string(::getpid()) + "; read order; echo $order >told$FIRST; exit 130";
  EXPECT_EQ(launch(script).status, kInterrupted);
  EXPECT_EQ(text("told0") + text("told2"), "stop\nstop\n");
}

}  // namespace
}  // namespace phalanx
