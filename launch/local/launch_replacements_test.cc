// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/local/launch_local.h"
#include "launch/local/meeting_folder.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/local_launches.h"

namespace phalanx {
namespace {

using testing::becomes_true;

// Ranks whose places others take. Newcomers end with status 0 once they are ranks.
class Replaces : public testing::LaunchLocal {
 protected:
  // Rank 0 lets all newcomers take part, and ends after `awaited` have done so or been given up.
  int launch(int replacements, int awaited, const std::function<int(const Newcomer&)>& newcomer) {
    const LocalLaunch options{.ranks = 2, .goes_on = true, .replacements = replacements, .replacement_delay = 0.02};
    return LaunchLocal::launch(options, [&](int rank) -> int {
      const MeetingFolder meeting(::getenv(kMeetingFolder));
      if (const char* self = ::getenv(kNewcomer)) {
        EXPECT_EQ(parse_newcomer(self).number, rank);
        EXPECT_EQ(::getenv("RANK"), std::to_string(rank));
        return newcomer(parse_newcomer(self));
      }
      note_training(log_folder_);
      if (rank == 1) {
        if (!leaves_) ::raise(SIGKILL);
        mark_lost(log_folder_, {.rank = 1, .message = "its replica has lost a rank"});
        return kDone;
      }
      for (int number = 2; number < 2 + awaited; ++number) {
        if (!becomes_true([&] { return !meeting.waiting().empty() || meeting.has_ended(number); })) return kFailed;
        const auto waiting = meeting.waiting();
        if (waiting.empty()) continue;
        meeting.note_part(meeting.invite({0}, waiting));
        mark_lost(log_folder_, {.rank = waiting[0].in_place_of, .message = "lost"});
      }
      return kDone;
    });
  }

  static int take_part(const Newcomer& self) {
    const MeetingFolder meeting(::getenv(kMeetingFolder));
    meeting.wait(self);
    return becomes_true([&] { return meeting.takes_part(self.number); }) ? kDone : kFailed;
  }

  bool leaves_ = false;  // rank 1 leaves instead of being killed
};

TEST_F(Replaces, StartsAProcessInPlaceOfALostRank) {
  const int status = launch(
      1, 1, [](const Newcomer& self) { return self.in_place_of == 1 && self.place == 1 ? take_part(self) : kFailed; });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
}

// Its end is no failure.
TEST_F(Replaces, StartsAProcessInPlaceOfARankThatLeaves) {
  leaves_ = true;
  const int status =
      launch(1, 1, [](const Newcomer& self) { return self.in_place_of == 1 ? take_part(self) : kFailed; });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
}

TEST_F(Replaces, StartsAnotherOneForANewcomerThatFails) {
  const int status = launch(2, 2, [](const Newcomer& self) -> int {
    if (self.number == 2) throw std::runtime_error("out of paper");
    return self.in_place_of == 1 && self.place == 1 ? take_part(self) : kFailed;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "Rank 2, which was to take the place of a lost one, has failed: out of paper\n");
}

TEST_F(Replaces, TellsTheRanksOfANewcomerThatLeavesWithoutAFailure) {
  for (const int leaves : {kDone, kInterrupted}) {
    const int status = launch(1, 1, [&](const Newcomer& self) {
      mark_lost(log_folder_, {.rank = self.in_place_of, .message = "lost"});
      return leaves;
    });
    EXPECT_EQ(status, kDone) << "rank 0 has waited for it in vain: " << error_;
    EXPECT_EQ(error_, "");
  }
}

TEST_F(Replaces, GivesUpAfterTheLastReplacement) {
  const int status = launch(2, 2, [](const Newcomer&) -> int { throw std::runtime_error("out of paper"); });
  EXPECT_NE(error_.find("No process takes the place of rank 1: 2 have been started already"), std::string::npos)
      << error_;
  EXPECT_EQ(status, kDone) << error_;
}

TEST_F(Replaces, EndsNewcomersThatStillWait) {
  const int status = launch(1, 1, [](const Newcomer& self) {
    const MeetingFolder meeting(::getenv(kMeetingFolder));
    meeting.note_end(self.number);  // rank 0 gives it up
    ::pause();
    return kFailed;
  });
  EXPECT_EQ(status, kDone) << error_;
}

}  // namespace
}  // namespace phalanx
