// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/slow_rank_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace phalanx {
namespace {

using Process = RankPicture::Process;

// A job of which rank `slow` waits for a hundredth of a second in each operation, and the others for `wait` seconds.
JobPicture job_with_slow(int slow, int size = 3, double wait = 1) {
  JobPicture job{.size = size, .taken = 100};
  for (int rank = 0; rank < size; ++rank) {
    RankPicture picture{.rank = rank, .host = "vm", .process = 100 + rank, .state = Process::kRuns};
    for (std::uint64_t step = 1; step <= 5; ++step) {
      const auto begin = static_cast<double>(2 * step);
      picture.operations.push_back({.number = step,
                                    .sequence = step,
                                    .group = "world",
                                    .op = "all_reduce",
                                    .state = "done",
                                    .launched = begin,
                                    .started = begin,
                                    .finished = begin + (rank == slow ? 0.01 : wait)});
    }
    job.ranks.push_back(picture);
  }
  return job;
}

class SlowRanks : public ::testing::Test {
 protected:
  // Looks at the times 0, 1, ... `until`, and returns what the looks have said, separated by spaces.
  std::string look(int until) {
    std::string said;
    for (; time_ <= until; ++time_) {
      if (const auto sentence = watch_.look(time_)) said += std::to_string(time_) + ": " + *sentence + "\n";
    }
    return said;
  }

  JobPicture job_ = job_with_slow(1);
  int looks_ = 0, time_ = 0;
  SlowRankWatch watch_{3, Seconds(20), [this] {
                         ++looks_;
                         return job_;
                       }};
};

TEST_F(SlowRanks, AreNamedOnceWithinTheTime) {
  EXPECT_EQ(look(40),
            "10: rank 1 is slow: the others regularly wait for it (process 101 on vm); the times of each rank at the "
            "end of the run say in which phase of a step\n");
  EXPECT_EQ(looks_, 9) << "one in 5 s";
  job_ = job_with_slow(2);
  EXPECT_NE(look(60).find("rank 2 is slow"), std::string::npos);
}

TEST_F(SlowRanks, AreNotThoseThatAreSlowForAMoment) {
  EXPECT_EQ(look(9), "");
  job_ = job_with_slow(2);
  EXPECT_EQ(look(19), "");
  job_ = job_with_slow(-1);  // all ranks wait for the network
  EXPECT_EQ(look(29), "");
  job_ = job_with_slow(1, 3, 0.6);  // the others wait for a third of the time
  EXPECT_EQ(look(59), "");
  job_ = job_with_slow(2);
  EXPECT_EQ(look(69), "");
}

TEST_F(SlowRanks, CannotBeFoundIfSomeAreOnOtherHosts) {
  job_.ranks[2].state = Process::kUnknown;
  EXPECT_EQ(look(100), "");
  EXPECT_EQ(looks_, 1);
}

TEST(SlowRankWatch, LooksLessOftenAtManyRanks) {
  int looks = 0;
  SlowRankWatch watch(64, Seconds(20), [&] {
    ++looks;
    return JobPicture{.size = 64};
  });
  for (int time = 0; time < 100; ++time) (void)watch.look(time);
  EXPECT_EQ(looks, 5) << "one in 20 s";
}

}  // namespace
}  // namespace phalanx
