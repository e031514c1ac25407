// SPDX-License-Identifier: Apache-2.0
#include "launch/local/lost_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/local/launch_local.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/local_launches.h"

namespace phalanx {
namespace {

using testing::becomes_true;

// Ranks that go on without those that are lost, as far as the launcher can see.
class GoesOn : public testing::LaunchLocal {
 protected:
  int launch(int ranks, const std::function<int(int)>& body, bool threads = false) {
    const LocalLaunch options{.ranks = ranks, .threads = threads, .goes_on = true, .lost_after = 0.3};
    return LaunchLocal::launch(options, [&](int rank) {
      if (trains_) note_training(log_folder_);
      return body(rank);
    });
  }

  // Waits until the reason for the end of a rank is known, and returns it. Another rank may have noted it by then.
  std::string reason_of(int rank) const {
    std::string reason;
    (void)becomes_true([&] {
      for (const auto& failures : {read_failures(log_folder_), lost_notes(log_folder_)}) {
        for (const auto& failure : failures) {
          if (failure.rank == rank) reason = failure.message;
        }
      }
      return !reason.empty();
    });
    return reason;
  }

  // Returns what a rank returns that goes on without `lost`, if that rank has ended for a reason that contains `text`.
  int go_on_without(int lost, const std::string& text) const {
    const std::string reason = reason_of(lost);
    if (reason.find(text) == std::string::npos) return kFailed;
    mark_lost(log_folder_, {.rank = lost, .message = reason});
    return kDone;
  }

  bool trains_ = true;  // training has begun
};

TEST_F(GoesOn, ALostRankDoesNotEndTheOthers) {
  EXPECT_EQ(launch(3,
                   [this](int rank) {
                     if (rank == 1) ::raise(SIGKILL);
                     const int status = go_on_without(1, "killed by signal 9 (SIGKILL)");
                     ::usleep(2'500'000);  // longer than the others have if they do not go on
                     return status;
                   }),
            kDone)
      << error_;
  EXPECT_EQ(error_, "");
  EXPECT_TRUE(lost_ranks(log_folder_).empty());
  EXPECT_TRUE(read_failures(log_folder_).empty());
}

TEST_F(GoesOn, ALaterFailureIsNotBlamedOnTheLostRank) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     (void)go_on_without(1, "SIGKILL");
                     throw std::runtime_error("out of paper");
                   }),
            kFailed);
  EXPECT_NE(error_.find("Rank 0 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ out of paper\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossThatNobodySurvivesIsTheCause) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     (void)reason_of(1);
                     throw CommError(CommError::Kind::kPeerLost, "rank 1 is gone");
                   }),
            kRankDied);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossThatNobodyNoticesDoesNotSpoilTheEnd) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     return reason_of(1).empty() ? kFailed : kDone;
                   }),
            kDone);
  EXPECT_EQ(error_,
            "Rank 1 of 2 was lost when the others did not need it any more: It was killed by signal 9 (SIGKILL).\n");
}

TEST_F(GoesOn, AnErrorThatNobodyNoticesIsTheCause) {
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) throw std::runtime_error("out of paper");
                     return kDone;
                   }),
            kFailed);
  EXPECT_NE(error_.find("│ out of paper\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossOfAllRanksIsTheCause) {
  EXPECT_EQ(launch(2, [](int) -> int { return ::raise(SIGKILL); }), kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, ARankThatIsStoppedForTooLongIsKilled) {
  EXPECT_EQ(launch(2,
                   [this](int rank) {
                     if (rank == 0) ::raise(SIGSTOP);
                     return go_on_without(0, "stopped for 0.3 s (faults.lost_after)");
                   }),
            kDone)
      << error_;
}

TEST_F(GoesOn, ALostRankThatHangsIsKilledWhenTheOthersHaveEnded) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) {
                       ::signal(SIGTERM, SIG_IGN);
                       for (;;) ::pause();
                     }
                     mark_lost(log_folder_, {.rank = 1});
                     return kDone;
                   }),
            kDone)
      << error_;
}

TEST_F(GoesOn, ARankThatGivesUpOnOneThatHangsEndsTheJob) {
  for (const bool threads : {false, true}) {
    EXPECT_EQ(launch(
                  2,
                  [](int rank) -> int {
                    if (rank == 0) throw CommError(CommError::Kind::kTimeout, "waited 4 s for rank 1");
                    for (;;) ::pause();
                  },
                  threads),
              kFailed);
    EXPECT_NE(error_.find("│ waited 4 s for rank 1\n"), std::string::npos) << error_;
    EXPECT_LT(seconds_, 30) << threads;
  }
}

TEST_F(GoesOn, ARankThatHasEndedTheJobIsTheCauseEvenIfItIsNotedAsLost) {
  EXPECT_EQ(launch(3,
                   [this](int rank) -> int {
                     if (rank == 0) throw CommError(CommError::Kind::kTimeout, "waited 4 s for rank 2");
                     if (rank == 1 && !reason_of(0).empty()) ::usleep(500'000);
                     if (rank == 1) mark_lost(log_folder_, {.rank = 0});
                     return kInterrupted;
                   }),
            kFailed);
  EXPECT_NE(error_.find("│ waited 4 s for rank 2\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossBeforeTrainingEndsTheOthers) {
  trains_ = false;
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     for (;;) ::pause();  // until rank 1 comes
                   }),
            kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, AnErrorOfAllRanksEndsAll) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ConfigError("no such model"); }), kUsage);
  EXPECT_NE(error_.find("│ no such model\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ThreadsGoOnToo) {
  EXPECT_EQ(launch(
                2,
                [this](int rank) -> int {
                  if (rank == 1) throw std::runtime_error("out of paper");
                  const int status = go_on_without(1, "out of paper");
                  ::usleep(4'000'000);  // longer than they have if they do not go on
                  return status;
                },
                /*threads=*/true),
            kDone)
      << error_;
}

TEST_F(GoesOn, ALostThreadThatHangsDoesNotKeepTheProcess) {
  EXPECT_EQ(launch(
                2,
                [this](int rank) -> int {
                  if (rank == 0) mark_lost(log_folder_, {.rank = 1});
                  while (rank == 1) ::pause();
                  return kDone;
                },
                /*threads=*/true),
            kDone)
      << error_;
}

}  // namespace
}  // namespace phalanx
