// SPDX-License-Identifier: Apache-2.0
#include "launch/local/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// Returns the end of a child that forwards signals, after this process was interrupted before the child was ready.
Supervisor::End end_of(const char* script) {
  Supervisor supervisor({.stop = SIGUSR1,
                         .orphaned = SIGKILL,
                         .after_failure = {},
                         .forced = {{milliseconds(0), SIGKILL}},
                         .repeat_stop = milliseconds(20)});
  supervisor.start([&] { return ::execl("/bin/sh", "sh", "-c", script, nullptr); });
  ::kill(::getpid(), SIGINT);
  auto ends = supervisor.run();
  EXPECT_TRUE(supervisor.interrupted());
  return ends.at(0);
}

TEST(Supervisor, AsksAChildToStopOnceItCatchesTheSignal) {
  const auto end = end_of("sleep 0.3; trap 'exit 7' USR1; while :; do sleep 0.01; done");
  ASSERT_TRUE(WIFEXITED(end.status)) << end.status;
  EXPECT_EQ(WEXITSTATUS(end.status), 7);
}

TEST(Supervisor, AsksUntilTheChildHasEnded) {
  const auto end = end_of("n=0; trap 'n=$((n + 1)); [ $n -lt 3 ] || exit $n' USR1; while :; do sleep 0.01; done");
  ASSERT_TRUE(WIFEXITED(end.status)) << end.status;
  EXPECT_EQ(WEXITSTATUS(end.status), 3);
}

TEST(Supervisor, DoesNotReadASocketAgainAfterItsEnd) {
  std::array<int, 2> ends;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  ::close(ends[1]);  // poll() reports the end as POLLIN and POLLHUP, however often it is read
  Supervisor supervisor({.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}});
  int calls = 0;
  supervisor.watch(ends[0], [&] {
    ++calls;
    return false;
  });
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 0.2", nullptr); });
  EXPECT_EQ(supervisor.run().size(), 1u);
  EXPECT_EQ(calls, 1);
  ::close(ends[0]);
}

TEST(Supervisor, KnowsWhenItEndsItsChildren) {
  for (const auto end : {&Supervisor::stop, &Supervisor::begin_shutdown, &Supervisor::end_now}) {
    Supervisor supervisor({.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}});
    EXPECT_FALSE(supervisor.is_ending());
    (supervisor.*end)();
    EXPECT_TRUE(supervisor.is_ending());
  }
}

TEST(Supervisor, RepeatsAnActionWhichMayKillAChild) {
  Supervisor supervisor({.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}});
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
  int calls = 0;
  const auto start = Supervisor::Clock::now();
  supervisor.repeat(milliseconds(20), [&] {
    EXPECT_TRUE(supervisor.is_running(0));
    if (++calls == 5) supervisor.kill(0);
  });
  const auto ends = supervisor.run();
  EXPECT_TRUE(WIFSIGNALED(ends.at(0).status) && WTERMSIG(ends[0].status) == SIGKILL) << ends[0].status;
  EXPECT_FALSE(supervisor.is_running(0));
  EXPECT_GE(Supervisor::Clock::now() - start, milliseconds(80));
}

TEST(Supervisor, RepeatsAnActionBeforeItNoticesTheEndOfAChild) {
  Supervisor supervisor({.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}});
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 0.2; kill -9 $$", nullptr); });
  int calls = 0;
  supervisor.repeat(std::chrono::hours(1), [&] {
    EXPECT_TRUE(supervisor.is_running(0));
    if (++calls == 2) supervisor.kill(0);
  });
  const auto ends = supervisor.run();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(ends.at(0).by_supervisor) << "the action has decided to end it";
}

TEST(Supervisor, StartsAChildInPlaceOfOneThatHasFailed) {
  std::optional<Supervisor> supervisor;
  supervisor.emplace(Supervisor::Policy{.stop = SIGTERM,
                                        .orphaned = SIGKILL,
                                        .after_failure = {},
                                        .forced = {},
                                        .goes_on = [&](const Supervisor::End& end) {
                                          if (end.child == 2) return true;
                                          supervisor->call_after(milliseconds(10), [&] {
                                            EXPECT_EQ(supervisor->children(), 2);
                                            supervisor->start([] { return 6; });
                                          });
                                          return true;
                                        }});
  supervisor->start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 0.5", nullptr); });
  supervisor->start([] { return 5; });
  const auto ends = supervisor->run();
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].child, 1);
  EXPECT_EQ(ends[1].child, 2);
  EXPECT_EQ(WEXITSTATUS(ends[1].status), 6);
}

TEST(Supervisor, EndsChildrenThatWaitOnceOnlyTheyAreLeft) {
  Supervisor supervisor(
      {.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}, .waits = [](int child) {
         return child == 1;
       }});
  supervisor.start([] { return 0; });
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 100", nullptr); });
  const auto ends = supervisor.run();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_TRUE(ends[1].by_supervisor);
}

TEST(Supervisor, EndsALostChildAndOneThatWaitsOnceOnlyTheyAreLeft) {
  Supervisor supervisor({.stop = SIGTERM,
                         .orphaned = SIGKILL,
                         .after_failure = {{milliseconds(0), SIGKILL}},
                         .forced = {},
                         .is_lost = [](int child) { return child == 1; },
                         .waits = [](int child) { return child == 2; }});
  supervisor.start([] { return 0; });
  for (int child = 1; child < 3; ++child) {
    supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 100", nullptr); });
  }
  const auto ends = supervisor.run();
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_TRUE(ends[1].by_supervisor);
  EXPECT_TRUE(ends[2].by_supervisor);
}

TEST(Supervisor, LeavesAStoppedChildAloneIfNoOtherCouldGoOn) {
  for (const int children : {1, 2}) {
    Supervisor supervisor({.stop = SIGTERM,
                           .orphaned = SIGKILL,
                           .after_failure = {},
                           .forced = {{milliseconds(0), SIGKILL}},
                           .stopped = milliseconds(500)});
    for (int child = 0; child < children; ++child) {
      supervisor.start(
          [] { return ::execl("/bin/sh", "sh", "-c", "(sleep 2; kill -CONT $$) & kill -STOP $$; exit 7", nullptr); });
    }
    for (const auto& end : supervisor.run()) {
      EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 7) << end.status << " of " << children;
    }
  }
}

TEST(Supervisor, KillsTheLastStoppedChildIfOthersElsewhereGoOn) {
  int asked = 0;
  Supervisor supervisor({.stop = SIGTERM,
                         .orphaned = SIGKILL,
                         .after_failure = {},
                         .forced = {{milliseconds(0), SIGKILL}},
                         .stopped = milliseconds(300),
                         .goes_on =
                             [&](const Supervisor::End& end) {
                               ++asked;
                               return end.stopped;
                             },
                         .others_elsewhere = true});
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "kill -STOP $$", nullptr); });
  const auto ends = supervisor.run();
  EXPECT_TRUE(ends.at(0).stopped);
  EXPECT_EQ(asked, 1);
}

TEST(Supervisor, WaitsForAChildThatIsExpectedAfterTheLastOne) {
  std::optional<Supervisor> supervisor;
  int ended = 0;
  supervisor.emplace(Supervisor::Policy{.stop = SIGTERM,
                                        .orphaned = SIGKILL,
                                        .after_failure = {},
                                        .forced = {},
                                        .ended = [&](const Supervisor::End&) { ++ended; },
                                        .expects_more = [&] { return ended < 2; }});
  supervisor->start([] { return 0; });
  supervisor->repeat(milliseconds(20), [&] {
    if (ended == 1 && supervisor->children() == 1) supervisor->start([] { return 7; });
  });
  const auto ends = supervisor->run();
  EXPECT_EQ(ended, 2);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(WEXITSTATUS(ends[1].status), 7);
}

TEST(Supervisor, DeliversSignalsByOtherMeans) {
  std::vector<int> delivered;
  Supervisor supervisor({.stop = SIGUSR1,
                         .orphaned = SIGKILL,
                         .after_failure = {{milliseconds(0), SIGTERM}, {milliseconds(100), SIGKILL}},
                         .forced = {{milliseconds(0), SIGKILL}},
                         .deliver = [&](int child, int signal) {
                           if (child == 1) delivered.push_back(signal);
                           return signal != SIGKILL;
                         }});
  supervisor.start([] { return 1; });
  supervisor.start([] { return ::execl("/bin/sh", "sh", "-c", "sleep 20", nullptr); });
  const auto ends = supervisor.run();
  EXPECT_EQ(delivered, (std::vector<int>{SIGTERM, SIGKILL}));
  EXPECT_EQ(ends.at(1).child, 1);
  EXPECT_TRUE(WIFSIGNALED(ends.at(1).status) && WTERMSIG(ends.at(1).status) == SIGKILL) << ends.at(1).status;
}

TEST(Supervisor, AsksAChildThatNeverCatchesTheSignalAtLast) {
  const auto end = end_of("while :; do sleep 0.01; done");
  ASSERT_TRUE(WIFSIGNALED(end.status)) << end.status;
  EXPECT_EQ(WTERMSIG(end.status), SIGUSR1);
  EXPECT_TRUE(end.by_supervisor);
}

}  // namespace
}  // namespace phalanx
