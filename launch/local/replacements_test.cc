// SPDX-License-Identifier: Apache-2.0
#include "launch/local/replacements.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

// Rank 0 of two, whose rank 1 ends, waits for a newcomer.
TEST(Replacements, GoOnIfAProcessCannotBeStarted) {
  const testing::Scratch scratch;
  Replacements replacements({.ranks = 2, .most = 2, .delay = 0.02, .meeting_folder = scratch.folder()});
  std::vector<int> tried;
  std::optional<Supervisor> supervisor;
  const auto start = [&](const Newcomer& newcomer) {
    tried.push_back(newcomer.number);
    EXPECT_EQ(replacements.pending(), 0);
    if (tried.size() == 1) throw Error("cannot start a process: no memory");
    supervisor->start([] { return 0; });
    supervisor->kill(0);
    return true;
  };
  supervisor.emplace(Supervisor::Policy{.stop = SIGTERM,
                                        .orphaned = SIGKILL,
                                        .after_failure = {},
                                        .forced = {},
                                        .goes_on = [&](const Supervisor::End& end) {
                                          replacements.notes().note_end(end.child);
                                          if (end.child != 1) return true;
                                          replacements.replace(1, *supervisor, start);
                                          EXPECT_EQ(replacements.pending(), 1);
                                          return true;
                                        }});
  supervisor->start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
  supervisor->start([] { return 1; });
  ::testing::internal::CaptureStderr();
  const auto ends = supervisor->run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "Rank 1 is not replaced yet: cannot start a process: no memory\n");
  EXPECT_EQ(ends.size(), 3U);
  EXPECT_EQ(tried, (std::vector<int>{2, 2}));
}

// Rank 1 ends, and there is no room for a process in its place. One more may still be started.
TEST(Replacements, DoNotCountAProcessForWhichThereIsNoRoom) {
  const testing::Scratch scratch;
  Replacements replacements({.ranks = 2, .most = 1, .meeting_folder = scratch.folder()});
  std::vector<int> tried;
  std::optional<Supervisor> supervisor;
  const auto start = [&](const Newcomer& newcomer) {
    tried.push_back(newcomer.in_place_of);
    if (newcomer.in_place_of == 1) return false;
    supervisor->kill(0);
    return true;
  };
  supervisor.emplace(Supervisor::Policy{
      .stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}, .goes_on = [&](const Supervisor::End&) {
        replacements.replace(1, *supervisor, start);
        supervisor->call_after(std::chrono::milliseconds(1), [&] { replacements.replace(0, *supervisor, start); });
        return true;
      }});
  supervisor->start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
  supervisor->start([] { return 1; });
  ::testing::internal::CaptureStderr();
  supervisor->run();
  EXPECT_EQ(tried, (std::vector<int>{1, 0}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Rank 1 ends, and so does a newcomer in its place, after which the delay is 10 minutes. Returns the newcomers that are
// started before 0.2 s have passed.
std::vector<int> started_at_once(bool takes_part, std::chrono::milliseconds runs_well) {
  const testing::Scratch scratch;
  Replacements replacements(
      {.ranks = 2, .most = 5, .delay = 600, .meeting_folder = scratch.folder(), .runs_well = runs_well});
  std::vector<int> started;
  std::optional<Supervisor> supervisor;
  const auto start = [&](const Newcomer& newcomer) {
    started.push_back(newcomer.number);
    supervisor->start([] { return 1; });
    if (takes_part) write_atomically(scratch.path("part." + std::to_string(newcomer.number)), "");
    if (started.size() == 2) supervisor->kill(0);
    return true;
  };
  supervisor.emplace(Supervisor::Policy{
      .stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}, .goes_on = [&](const auto& end) {
        if (end.child == 1 || end.child == 2) replacements.replace(end.child, *supervisor, start);
        if (end.child == 2) supervisor->call_after(std::chrono::milliseconds(200), [&] { supervisor->kill(0); });
        return true;
      }});
  supervisor->start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
  supervisor->start([] { return 1; });
  supervisor->run();
  return started;
}

TEST(Replacements, BeginAgainWithTheShortestDelayOnceAProcessHasRunWell) {
  EXPECT_EQ(started_at_once(true, std::chrono::milliseconds(0)), (std::vector<int>{2, 3}));
}

TEST(Replacements, ComeLaterAfterAProcessThatEndedSoon) {
  EXPECT_EQ(started_at_once(true, std::chrono::hours(1)), (std::vector<int>{2}));
}

TEST(Replacements, ComeLaterAfterAProcessThatNeverTookPart) {
  EXPECT_EQ(started_at_once(false, std::chrono::milliseconds(0)), (std::vector<int>{2}));
}

// There is no room for a process in place of rank 1, and then there is.
TEST(Replacements, ComeAtOnceAfterOneForWhichThereWasNoRoom) {
  const testing::Scratch scratch;
  Replacements replacements({.ranks = 2, .most = 5, .delay = 600, .meeting_folder = scratch.folder()});
  const auto lost_at = std::chrono::system_clock::now() - std::chrono::hours(1);
  std::vector<Newcomer> tried;
  std::optional<Supervisor> supervisor;
  const auto start = [&](const Newcomer& newcomer) {
    tried.push_back(newcomer);
    if (tried.size() == 2) supervisor->kill(0);
    return tried.size() == 2;
  };
  supervisor.emplace(Supervisor::Policy{
      .stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}, .goes_on = [&](const auto&) {
        const auto replace = [&] { replacements.replace(1, *supervisor, start, lost_at); };
        replace();
        supervisor->call_after(std::chrono::milliseconds(1), replace);
        supervisor->call_after(std::chrono::milliseconds(200), [&] { supervisor->kill(0); });
        return true;
      }});
  supervisor->start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
  supervisor->start([] { return 1; });
  supervisor->run();
  ASSERT_EQ(tried.size(), 2U);
  EXPECT_EQ(tried[1].lost_at, lost_at);
}

TEST(Replacements, GoOnIfTheFolderCannotBeWritten) {
  const Replacements replacements({.ranks = 2, .most = 2, .meeting_folder = "/no/such/folder"});
  ::testing::internal::CaptureStderr();
  replacements.notes().note_end(1);
  EXPECT_TRUE(
      ::testing::internal::GetCapturedStderr().starts_with("Rank 1 has ended, of which the others are not told"));
}

}  // namespace
}  // namespace phalanx
