// SPDX-License-Identifier: Apache-2.0
#include "launch/job/started_rank.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

TEST(StartedRank, AThreadIsOnTheHostOfAllOthers) {
  const SharedByThreads shared;
  const StartedRank rank = thread_rank(2, 3, RunFolder("runs/x"), shared);
  EXPECT_EQ(rank.rank(), 2);
  EXPECT_EQ(rank.launched.rank_info.size, 3);
  EXPECT_EQ(rank.launched.rank_info.local_rank, 2);
  EXPECT_TRUE(rank.launched.rank_info.one_host());
  EXPECT_EQ(rank.shared, &shared);
  ASSERT_TRUE(rank.folder);
  EXPECT_EQ(rank.folder->path(), "runs/x");
}

// Sets environment variables for the duration of a test.
class Variables {
 public:
  explicit Variables(std::vector<std::pair<const char*, const char*>> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const auto& [name, value] : variables_) ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

TEST(StartedRank, AForkReadsItsRankFromItsEnvironment) {
  const Variables variables({{"RANK", "1"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"PHALANX_RENDEZVOUS", "file:///tmp/no/store"},
                             {"PHALANX_LAUNCHER", "local"}});
  const StartedRank rank = forked_rank(RunFolder("runs/x"));
  EXPECT_EQ(rank.rank(), 1);
  EXPECT_EQ(rank.launched.launcher, "local");
  EXPECT_EQ(rank.launched.rendezvous, "file:///tmp/no/store");
  EXPECT_EQ(rank.shared, nullptr);
  EXPECT_TRUE(rank.folder);
}

TEST(StopPolicyOf, RoundsTheGracePeriodUp) {
  Job job{.saves = false};
  job.config.launch.grace = 0.0001;
  EXPECT_EQ(stop_policy_of(job).grace, std::chrono::milliseconds(1));
  EXPECT_FALSE(stop_policy_of(job).after_step);
  EXPECT_TRUE(stop_policy_of(Job{}).after_step);
}

}  // namespace
}  // namespace phalanx
