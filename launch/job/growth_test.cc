// SPDX-License-Identifier: Apache-2.0
// The test takes the place of all ranks but one.
#include "launch/job/growth.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>

#include "framework/base/error.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/store/store.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using WallTime = std::chrono::system_clock::time_point;

using testing::becomes_true;
using ::testing::ElementsAre;

class Growth : public ::testing::Test {
 protected:
  Growth() {
    config_.backend = "gloo";
    config_.framework.timeout = 600;
  }

  // Begins to connect the first of two ranks with a newcomer.
  std::future<std::optional<Connections>> begin() {
    return std::async(std::launch::async, [this] {
      return connect_with_newcomers(folder_, attempt_, 0, config_,
                                    LaunchEnvironment{.launcher = "local", .rank_info = {}});
    });
  }

  // The deadline of an attempt is twice as long.
  static bool soon(const std::future<std::optional<Connections>>& end) {
    return end.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  }

  testing::Scratch scratch_;
  MeetingFolder folder_{scratch_.folder()};
  Attempt attempt_ = folder_.invite({0}, {{.number = 2}});
  ExperimentConfig config_;
};

TEST_F(Growth, ANewcomerThatEndsWhileRanksConnectCostsNoTimeout) {
  auto end = begin();
  folder_.arrive(attempt_, 1);
  const auto common = make_file_store(folder_.store(attempt_), 2, Seconds(60));
  common->set("local_rank/1", "1 " + host_key());  // the newcomer is on the same host
  const auto store = make_prefix_store("gloo", common);
  store->get("gloo/0");                 // the rank listens, and waits for the newcomer,
  store->set("gloo/1", "127.0.0.1:1");  // which has told its address, but does not connect
  folder_.note_end(2);
  ASSERT_TRUE(soon(end));
  EXPECT_FALSE(end.get());
  EXPECT_TRUE(folder_.is_decided_against(attempt_));
  EXPECT_FALSE(folder_.is_postponed(attempt_));
}

TEST_F(Growth, ARankThatGivesUpEndsTheWaitOfTheOthers) {
  auto end = begin();
  EXPECT_TRUE(becomes_true([&] { return folder_.has_arrived(attempt_, 0); }));
  folder_.decide(attempt_, false);
  ASSERT_TRUE(soon(end));
  EXPECT_FALSE(end.get());
}

// As on a full disk.
TEST_F(Growth, ARankThatCannotSayThatItHasComeLetsNewcomersWait) {
  std::filesystem::create_directory(scratch_.path("attempt.0/0"));
  auto end = begin();
  ASSERT_TRUE(soon(end));
  EXPECT_FALSE(end.get());
  EXPECT_TRUE(folder_.is_postponed(attempt_));
}

// As on a disk that becomes full in the middle of an attempt.
TEST_F(Growth, ARankThatCannotUseTheStoreLetsNewcomersWait) {
  for (const char* name : {"attempt.0/store", "attempt.0/room.0"}) {
    std::filesystem::create_directory(scratch_.path(name));
  }
  auto end = begin();
  folder_.arrive(attempt_, 1);
  ASSERT_TRUE(soon(end));
  EXPECT_FALSE(end.get());
  EXPECT_TRUE(folder_.is_postponed(attempt_));
}

TEST_F(Growth, GoesOnWithoutNewcomersIfTheFolderDisappearsBeforeAllHaveCome) {
  auto end = begin();
  EXPECT_TRUE(becomes_true([&] { return folder_.has_arrived(attempt_, 0); }));
  std::filesystem::rename(scratch_.path("attempt.0"), scratch_.path("removed"));  // all of it at once
  ASSERT_TRUE(soon(end));
  EXPECT_FALSE(end.get());
}

TEST_F(Growth, ARankEndsPlainlyIfTheFolderDisappearsWhileRanksConnect) {
  auto end = begin();
  folder_.arrive(attempt_, 1);
  const auto common = make_file_store(folder_.store(attempt_), 2, Seconds(60));
  common->set("local_rank/1", "1 " + host_key());
  make_prefix_store("gloo", common)->get("gloo/0");  // the rank waits for the newcomer
  std::filesystem::rename(scratch_.path("attempt.0"), scratch_.path("removed"));
  ASSERT_TRUE(soon(end));
  EXPECT_THAT([&] { end.get(); }, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                                      "the meeting folder has disappeared while newcomers connected, so this rank")));
}

TEST(History, IsTheSameAfterAWayThroughText) {
  const WallTime time(std::chrono::seconds(1'800'000'000));
  const History history = parse_history(to_text(
      History{.everyone = {0, 1, 2},
              .lost = {{.rank = 1, .reason = "out of \"paper\"", .step = 7, .seconds = 0.25}},
              .returned = {{.rank = 2, .in_place_of = 1, .source = 0, .step = 9, .seconds = 1.5, .lost_at = time}},
              .lost_seconds = 0.5}));
  EXPECT_THAT(history.everyone, ElementsAre(0, 1, 2));
  EXPECT_EQ(history.lost.at(0).reason, "out of \"paper\"");
  EXPECT_EQ(history.lost.at(0).step, 7);
  EXPECT_EQ(history.returned.at(0).in_place_of, 1);
  EXPECT_EQ(history.returned.at(0).lost_at, time);
  EXPECT_EQ(history.lost_seconds, 0.5);
}

TEST(History, ThatIsMalformedIsAnError) {
  for (const char* text :
       {"", "{", "[]", R"({"everyone": [0], "lost": [[1, "reason", 7]], "returned": [], "lost_seconds": 0})",
        R"({"everyone": [0], "lost": [], "returned": [[1, 2, 3, 4, 5]], "lost_seconds": 0})",
        R"({"everyone": [1e300], "lost": [], "returned": [], "lost_seconds": 0})"}) {
    EXPECT_THROW((void)parse_history(text), DataError) << text;
  }
}

}  // namespace
}  // namespace phalanx
