// SPDX-License-Identifier: Apache-2.0
#include "launch/job/shrinking_world.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <barrier>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/testing/worlds.h"
#include "launch/failure/failure.h"
#include "launch/local/meeting_folder.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::run_ranks;
using ::testing::ThrowsMessage;

class ShrinksWorld : public ::testing::Test {
 protected:
  // Runs ranks, of which the first `lost` end at once and the others call `survive`. Returns what they have printed.
  std::string lose(int ranks, int lost, const std::function<void(ShrinkingWorld&)>& survive) {
    ::testing::internal::CaptureStderr();
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      if (world->rank() < lost) return;
      const ShrinkingWorld::Rank rank{.number_in_job = world->rank(), .thread = true, .log_folder = scratch_.folder()};
      ShrinkingWorld shrinking({{"inproc", world}}, rank, config_);
      survive(shrinking);
    });
    return ::testing::internal::GetCapturedStderr();
  }

  testing::Scratch scratch_;
  ExperimentConfig config_;
};

TEST_F(ShrinksWorld, TellsWhoWasLostAndWhy) {
  write_failure(scratch_.folder(), {.rank = 0, .message = "Out of paper.\nSee the manual."});
  const auto printed = lose(3, 1, [](ShrinkingWorld& world) {
    Recovery recovery;
    EXPECT_TRUE(world.shrink(recovery));
    EXPECT_TRUE(recovery.rebuilt);
    EXPECT_EQ(world.world().size(), 2);
    EXPECT_EQ(world.config().launch.ranks, 2);
    ASSERT_EQ(recovery.lost.size(), 1U);
    EXPECT_EQ(recovery.lost[0].rank, 0);
    EXPECT_EQ(recovery.lost[0].reason, "Out of paper");
  });
  EXPECT_EQ(printed, "Rank 0 of 3 is lost, 2 are left: Out of paper\n");
  EXPECT_THAT(lost_ranks(scratch_.folder()), ElementsAre(0));
}

// Three ranks train, and three serve parameters with copies. Rank 3 is lost, and before training goes on, rank 4.
class LosesServers : public ShrinksWorld {
 protected:
  LosesServers() {
    config_.roles.server = 3;
    config_.roles.replicas = 2;
    for (const int rank : {3, 4}) write_failure(scratch_.folder(), {.rank = rank, .message = "Out of paper."});
  }

  // Calls `after` on the ranks that are left after the first loss. `recovery` has what they have of the parameters.
  void lose_two(const std::function<void(int rank, ShrinkingWorld& world, Recovery& recovery)>& after) {
    ::testing::internal::CaptureStderr();
    std::barrier all_have_shrunk(5);
    run_ranks("inproc", 6, [&](const CommunicatorPtr& world) {
      const int number = world->rank();
      if (number == 3) return;
      ShrinkingWorld shrinking({{"inproc", world}},
                               {.number_in_job = number, .thread = true, .log_folder = scratch_.folder()}, config_);
      Recovery recovery;
      recovery.serves = number > 2;
      if (!recovery.serves) recovery.carried = nothing_carried();
      if (!recovery.serves) recovery.carried->centre = {.order = 3, .on_servers = true};
      EXPECT_TRUE(shrinking.shrink(recovery));
      all_have_shrunk.arrive_and_wait();
      if (number != 4) after(number, shrinking, recovery);
    });
    printed_ = ::testing::internal::GetCapturedStderr();
  }

  std::string printed_;
};

TEST_F(LosesServers, EndsIfTheParametersCannotBeReadAnyMore) {
  lose_two([](int, ShrinkingWorld& world, Recovery& recovery) {
    EXPECT_THAT([&] { (void)world.shrink(recovery); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("Ranks 3 and 4, parameter servers, are lost"), HasSubstr("set launch.restarts"))));
  });
  EXPECT_THAT(printed_, HasSubstr("Ranks 3 and 4, parameter servers, are lost"));
}

TEST_F(LosesServers, GoesOnIfARankHasTheParametersInMemory) {
  lose_two([](int rank, ShrinkingWorld& world, Recovery& recovery) {
    if (rank == 1) recovery.carried->centre = {.order = 4};
    EXPECT_TRUE(world.shrink(recovery));
    EXPECT_EQ(world.world().size(), 4);
    EXPECT_EQ(world.config().roles.server, 1);
  });
}

TEST_F(ShrinksWorld, SaysSoIfNobodyIsLost) {
  const auto printed = lose(2, 0, [](ShrinkingWorld& world) {
    Recovery recovery;
    EXPECT_FALSE(world.shrink(recovery));
    EXPECT_THAT(recovery.lost, IsEmpty());
  });
  EXPECT_EQ(printed, "");
  EXPECT_THAT(lost_ranks(scratch_.folder()), IsEmpty());
}

// The rank that has told of the first loss is lost itself before all others know.
TEST_F(ShrinksWorld, TellsOfEachLossOnce) {
  mark_lost(scratch_.folder(), {.rank = 1, .message = "it was killed"});
  write_failure(scratch_.folder(), {.rank = 0, .message = "out of paper"});
  const auto printed = lose(4, 2, [](ShrinkingWorld& world) {
    Recovery recovery;
    // This rank knows of the first loss already.
    if (world.world().rank() == 3) recovery.lost.push_back({.rank = 1, .reason = "it was killed"});
    EXPECT_TRUE(world.shrink(recovery));
    ASSERT_EQ(recovery.lost.size(), 2U);
    for (const auto& one : recovery.lost) EXPECT_EQ(one.reason, one.rank == 1 ? "it was killed" : "out of paper");
  });
  EXPECT_EQ(printed, "Rank 0 of 4 is lost, 2 are left: out of paper\n");
}

TEST_F(ShrinksWorld, LosesTheWholeReplica) {
  config_.mesh.tensor = 2;
  write_failure(scratch_.folder(), {.rank = 0, .message = "out of paper"});
  const auto printed = lose(6, 1, [](ShrinkingWorld& world) {
    Recovery recovery;
    const bool stranded = world.world().rank() == 1;
    EXPECT_TRUE(world.shrink(recovery));
    EXPECT_EQ(world.leaves(), stranded);
    if (stranded) return;
    EXPECT_EQ(world.world().size(), 4);
    EXPECT_EQ(world.config().launch.ranks, 4);
    ASSERT_EQ(recovery.lost.size(), 2U);
    EXPECT_EQ(recovery.lost[0].reason, "out of paper");
    EXPECT_EQ(recovery.lost[1].rank, 1);
    EXPECT_EQ(recovery.lost[1].reason, "its replica has lost rank 0");
  });
  EXPECT_EQ(printed, "Rank 0 of 6 is lost, 4 are left: out of paper\nRank 1 leaves: its replica has lost rank 0\n");
  EXPECT_THAT(lost_ranks(scratch_.folder()), ElementsAre(0, 1));
}

TEST_F(ShrinksWorld, EndsIfNoReplicaIsWhole) {
  config_.mesh.pipe = 3;
  const auto printed = lose(3, 1, [](ShrinkingWorld& world) {
    Recovery recovery;
    try {
      (void)world.shrink(recovery);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("each replica has lost a rank, so nobody can go on; lost ranks: 0"));
    }
  });
  EXPECT_EQ(printed, "");
}

// A newcomer waits, but the folder cannot be used, as on a full disk.
class InvitesNobody : public ShrinksWorld {
 protected:
  // Returns what a person sees: warnings of a rank go to its log, which is standard error in this test.
  static std::string without_log(const std::string& printed) {
    std::string told;
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" WARNING ") == line.npos) told += line + "\n";
    }
    return told;
  }

  void SetUp() override {
    config_.faults.on_lost_rank = "replace";
    ::setenv(kMeetingFolder, meeting_.folder().c_str(), 1);
    MeetingFolder(meeting_.folder()).wait({.number = 2, .in_place_of = 1});
  }
  void TearDown() override { ::unsetenv(kMeetingFolder); }

  testing::Scratch meeting_;
};

TEST_F(InvitesNobody, GoesOnWithTheRanksThereAreIfAnInvitationCannotBeWritten) {
  write_atomically(meeting_.path("attempt.0"), "a file where the folder of an attempt should be");
  const auto printed = lose(2, 0, [](ShrinkingWorld& world) {
    Recovery recovery;
    const bool first = world.world().rank() == 0;
    if (first) {
      EXPECT_TRUE(world.newcomers_wait());
    }
    for (int i = 0; i < 2; ++i) world.grow({}, recovery);
    EXPECT_EQ(world.world().size(), 2);
    if (first) {
      EXPECT_FALSE(world.newcomers_wait()) << "the ranks do not leave each step for the same error";
    }
    world.world().barrier().wait();
  });
  const auto told = without_log(printed);
  EXPECT_THAT(told,
              ::testing::StartsWith("Lost ranks are not replaced at present, and training goes on without them: " +
                                    meeting_.path("attempt.0") + ": "));
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << printed;
}

TEST_F(InvitesNobody, GoesOnIfWhatANewcomerHasWrittenCannotBeRead) {
  write_atomically(meeting_.path("waits.2"), "nonsense");
  const auto printed = lose(1, 0, [](ShrinkingWorld& world) {
    EXPECT_FALSE(world.newcomers_wait());
    EXPECT_FALSE(world.newcomers_wait());
  });
  EXPECT_EQ(without_log(printed),
            "Lost ranks are not replaced at present, and training goes on without them: "
            "\"nonsense\" describes no newcomer\n");
}

// A newcomer, rank 2. The test takes the place of the ranks.
class ANewcomer : public ::testing::Test {
 protected:
  ANewcomer() {
    config_.faults.on_lost_rank = "replace";
    ::setenv(kMeetingFolder, folder_.c_str(), 1);
  }
  ~ANewcomer() override { ::unsetenv(kMeetingFolder); }
  ANewcomer(const ANewcomer&) = delete;
  ANewcomer& operator=(const ANewcomer&) = delete;

  // Returns true if the newcomer has taken part, and false if it has waited until it was stopped.
  bool join(const std::function<bool()>& stopped) {
    Recovery recovery;
    return ShrinkingWorld::join(self_, {.number_in_job = 2, .log_folder = scratch_.folder()}, config_,
                                LaunchEnvironment{.launcher = "local", .rank_info = {}}, recovery, stopped)
        .has_value();
  }

  testing::Scratch scratch_;
  const std::string folder_ = scratch_.path("meeting");
  const MeetingFolder meeting_{folder_};
  const Newcomer self_{.number = 2, .in_place_of = 1};
  ExperimentConfig config_;
};

TEST_F(ANewcomer, TriesAgainToAskWhileTheFolderCannotBeWritten) {
  int tries = 0;
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(join([&] {
    if (++tries == 3) std::filesystem::create_directory(folder_);
    return tries > 3 && !meeting_.waiting().empty();
  }));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("Rank 2 cannot ask to take part, and tries again until it can: .*\n"));
  EXPECT_TRUE(meeting_.has_ended(2));
}

// It cannot say that it has come, as on a full disk.
TEST_F(ANewcomer, WaitsAgainAfterAnAttemptThatIsPostponed) {
  std::filesystem::create_directory(folder_);
  const auto attempt = meeting_.invite({0}, {self_});
  std::filesystem::create_directory(folder_ + "/attempt.0/1");
  EXPECT_FALSE(join([&] { return meeting_.is_postponed(attempt) && !meeting_.waiting().empty(); }));
  EXPECT_EQ(meeting_.invitation(2), std::nullopt);
}

// Two of three ranks are left.
class AwaitsNewcomers : public ShrinksWorld {
 protected:
  AwaitsNewcomers() {
    ::setenv(kMeetingFolder, meeting_.folder().c_str(), 1);
    config_.faults.on_lost_rank = "replace";
    config_.faults.min_ranks = 3;
    config_.faults.wait = 600;
    write_failure(scratch_.folder(), {.rank = 0, .message = "out of paper"});
  }
  ~AwaitsNewcomers() override { ::unsetenv(kMeetingFolder); }
  AwaitsNewcomers(const AwaitsNewcomers&) = delete;
  AwaitsNewcomers& operator=(const AwaitsNewcomers&) = delete;

  // Expects that both wait with this result, and returns what is printed.
  std::string await(bool result, const std::function<bool(int rank)>& stopped = [](int) { return false; }) {
    return lose(3, 1, [&](ShrinkingWorld& world) {
      Recovery recovery;
      EXPECT_TRUE(world.shrink(recovery));
      EXPECT_EQ(world.await_newcomers([&] { return stopped(world.world().rank()); }), result);
    });
  }

  testing::Scratch meeting_;
  const std::string loss_ = "Rank 0 of 3 is lost, 2 are left: out of paper\n";
  const std::string waits_ = " for new processes, since 2 ranks are left and faults.min_ranks is 3\n";
};

TEST_F(AwaitsNewcomers, UntilThereAreEnough) {
  MeetingFolder(meeting_.folder()).wait({.number = 3});
  EXPECT_EQ(await(true), loss_ + "Waits up to 600 s" + waits_);
}

TEST_F(AwaitsNewcomers, UntilTheTimeIsOver) {
  config_.faults.wait = 0.05;
  EXPECT_EQ(await(false), loss_ + "Waits up to 0.05 s" + waits_);
}

TEST_F(AwaitsNewcomers, UntilARankIsStopped) {
  EXPECT_EQ(await(false, [](int rank) { return rank == 1; }), loss_ + "Waits up to 600 s" + waits_);
}

// A planned fault asks before the vote of the same step does.
TEST_F(AwaitsNewcomers, AndKnowsOfThemHoweverOftenItIsAsked) {
  MeetingFolder(meeting_.folder()).wait({.number = 3});
  lose(2, 0, [](ShrinkingWorld& world) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.newcomers_wait()) << "rank " << world.world().rank();
  });
}

TEST_F(AwaitsNewcomers, InWholeReplicas) {
  config_.faults.min_ranks = 6;
  config_.mesh.tensor = 2;
  const MeetingFolder meeting(meeting_.folder());
  meeting.wait({.number = 4});
  lose(4, 0, [](ShrinkingWorld& world) { EXPECT_FALSE(world.newcomers_wait()); });
  for (const int number : {5, 6}) meeting.wait({.number = number});
  lose(4, 0, [](ShrinkingWorld& world) {
    EXPECT_TRUE(world.newcomers_wait());
    EXPECT_TRUE(world.await_newcomers([] { return false; }));
  });
}

TEST_F(AwaitsNewcomers, OnlyIfThereAreTooFewRanks) {
  config_.faults.min_ranks = 2;
  EXPECT_EQ(await(false), loss_);
}

}  // namespace
}  // namespace phalanx
