// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/slow_rank_watch.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace phalanx {
namespace {

using Process = RankPicture::Process;

// The number of operations of a rank that a picture has: the last ones.
constexpr std::size_t kPictured = 64;

JobPicture job_of(int size) {
  JobPicture job{.size = size, .taken = 100};
  for (int rank = 0; rank < size; ++rank) {
    job.ranks.push_back({.rank = rank, .host = "vm", .process = 100 + rank, .state = Process::kRuns});
  }
  return job;
}

// Three ranks that begin an operation every `every_` seconds, in which they wait `wait_` seconds for rank `slow_`.
class SlowRanks : public ::testing::Test {
 protected:
  // Looks at the times up to `until`, and returns what the looks have said.
  std::string look(int until) {
    std::string said;
    for (; time_ <= until; ++time_) {
      if (const auto sentence = watch_.look(time_)) said += std::to_string(time_) + ": " + *sentence + "\n";
      if ((time_ + 1) % every_ == 0) complete(time_, wait_);
    }
    return said;
  }

  // Adds an operation that begins at this time. Rank slow_ comes last and does not wait.
  void complete(double begin, double wait) {
    ++sequence_;
    for (auto& rank : job_.ranks) {
      const bool waits = rank.rank != slow_;
      rank.operations.push_back({.number = sequence_,
                                 .sequence = sequence_,
                                 .group = "world",
                                 .op = "all_reduce",
                                 .state = "done",
                                 .launched = waits ? begin : begin + wait,
                                 .started = waits ? begin : begin + wait,
                                 .finished = begin + wait + 0.01});
      if (rank.operations.size() > kPictured) rank.operations.erase(rank.operations.begin());
    }
  }

  JobPicture job_ = job_of(3);
  int slow_ = 1, every_ = 1;  // the rank for which the others wait, and the seconds from one operation to the next
  double wait_ = 0.5;
  std::uint64_t sequence_ = 0;
  int looks_ = 0, time_ = 0;
  SlowRankWatch watch_{3, Seconds(20), [this] {
                         ++looks_;
                         return job_;
                       }};
};

TEST_F(SlowRanks, AreNamedOnceWithinTheTime) {
  EXPECT_EQ(look(40),
            "15: rank 1 is slow: the others regularly wait for it (process 101 on vm); the times of each rank at the "
            "end of the run say in which phase of a step\n");
  EXPECT_EQ(looks_, 9) << "one in 5 s";
  slow_ = 2;
  EXPECT_NE(look(60).find("rank 2 is slow"), std::string::npos);
}

TEST_F(SlowRanks, AreNotThoseThatAreSlowForAMoment) {
  EXPECT_EQ(look(10), "");
  slow_ = 2;
  EXPECT_EQ(look(20), "");
  slow_ = -1;  // all ranks wait for the network
  EXPECT_EQ(look(30), "");
  slow_ = 1;
  wait_ = 0.3;  // the others wait for a third of the time
  EXPECT_EQ(look(60), "");
  wait_ = 0.5;
  slow_ = 2;
  EXPECT_EQ(look(70), "");
}

TEST_F(SlowRanks, AreNotThoseForWhichTheOthersHaveWaitedOnce) {
  slow_ = 0;
  wait_ = 0;
  EXPECT_EQ(look(20), "");
  complete(20, 20);  // rank 0 prepares data
  time_ = 40;
  EXPECT_EQ(look(80), "");
  EXPECT_EQ(job_.ranks[0].operations.size(), 63U) << "the long one is still in the picture";
}

TEST_F(SlowRanks, AreFoundAlsoIfNotEachLookHasEnoughOperations) {
  every_ = 4;
  wait_ = 2;
  EXPECT_THAT(look(60), ::testing::StartsWith("40: rank 1 is slow"));
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
