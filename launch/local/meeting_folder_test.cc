// SPDX-License-Identifier: Apache-2.0
#include "launch/local/meeting_folder.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> numbers(const std::vector<Newcomer>& newcomers) {
  std::vector<int> all;
  for (const auto& one : newcomers) all.push_back(one.number);
  return all;
}

class Meeting : public ::testing::Test {
 protected:
  testing::Scratch scratch_;
  MeetingFolder folder_{scratch_.folder()};
};

TEST_F(Meeting, InvitesThoseWhoWait) {
  EXPECT_THAT(folder_.waiting(), IsEmpty());
  for (const int number : {4, 2, 3}) folder_.wait({.number = number, .in_place_of = number - 2});
  folder_.note_end(3);
  EXPECT_THAT(numbers(folder_.waiting()), ElementsAre(2, 4));
  const auto attempt = folder_.invite({0, 1, 5}, folder_.waiting());
  EXPECT_EQ(attempt.size(), 5);
  EXPECT_EQ(folder_.invitation(3), std::nullopt);
  const auto invitation = folder_.invitation(4);
  ASSERT_TRUE(invitation);
  EXPECT_EQ(invitation->number, attempt.number);
  EXPECT_EQ(invitation->first(), 3);
  EXPECT_THAT(invitation->numbers(), ElementsAre(0, 1, 5, 2, 4));
  EXPECT_THAT(numbers(invitation->newcomers), ElementsAre(2, 4));
  EXPECT_EQ(invitation->newcomers[1].in_place_of, 2);
  EXPECT_THAT(folder_.waiting(), IsEmpty()) << "nobody is invited twice";
}

TEST_F(Meeting, HasNobodyInARemovedFolder) {
  EXPECT_THAT(MeetingFolder(scratch_.path("removed")).waiting(), IsEmpty());
}

TEST_F(Meeting, TheFirstToDecideDecides) {
  const auto one = folder_.invite({0}, {{.number = 2}}), other = folder_.invite({0}, {{.number = 2}});
  EXPECT_NE(one.number, other.number);
  EXPECT_TRUE(folder_.decide(one, true));
  EXPECT_TRUE(folder_.decide(one, false));
  EXPECT_FALSE(folder_.decide(other, false));
  EXPECT_FALSE(folder_.decide(other, true));
}

TEST_F(Meeting, KnowsThatItIsDecidedAgainstAnAttempt) {
  const auto attempt = folder_.invite({0}, {{.number = 2}}), used = folder_.invite({0}, {{.number = 3}});
  EXPECT_FALSE(folder_.is_decided_against(attempt));
  folder_.decide(attempt, false);
  EXPECT_TRUE(folder_.is_decided_against(attempt));
  folder_.decide(used, true);
  EXPECT_FALSE(folder_.is_decided_against(used));
}

TEST_F(Meeting, LetsNewcomersWaitAgainAfterAnAttemptThatIsPostponed) {
  folder_.wait({.number = 2});
  const auto attempt = folder_.invite({0}, folder_.waiting());
  EXPECT_FALSE(folder_.is_postponed(attempt));
  folder_.postpone(attempt);
  EXPECT_TRUE(folder_.is_postponed(attempt));
  EXPECT_TRUE(folder_.is_decided_against(attempt));
  EXPECT_FALSE(folder_.decide(attempt, true));
  folder_.wait_again(2);
  EXPECT_EQ(folder_.invitation(2), std::nullopt);
  EXPECT_THAT(numbers(folder_.waiting()), ElementsAre(2));
}

TEST_F(Meeting, DoesNotPostponeWhatIsDecided) {
  const auto used = folder_.invite({0}, {{.number = 2}}), other = folder_.invite({0}, {{.number = 3}});
  folder_.decide(used, true);
  folder_.decide(other, false);
  for (const auto& attempt : {used, other}) {
    folder_.postpone(attempt);
    EXPECT_FALSE(folder_.is_postponed(attempt));
  }
  EXPECT_TRUE(folder_.decide(used, false));
}

// As on a full disk.
TEST_F(Meeting, PostponesAnAttemptToWhichNotAllCanBeInvited) {
  std::filesystem::create_directory(scratch_.path("invited.3"));
  EXPECT_THROW(folder_.invite({0}, {{.number = 2}, {.number = 3}}), Error);
  const auto invitation = folder_.invitation(2);
  ASSERT_TRUE(invitation);
  EXPECT_TRUE(folder_.is_postponed(*invitation));
}

TEST_F(Meeting, KnowsWhetherARankCanWrite) {
  const auto attempt = folder_.invite({0}, {{.number = 2}});
  std::filesystem::create_directory(scratch_.path("attempt.0/room.1"));
  EXPECT_TRUE(folder_.has_room(attempt, 0));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("attempt.0/room.0")));
  EXPECT_FALSE(folder_.has_room(attempt, 1));
}

TEST_F(Meeting, DoesNotDecideInAFolderThatIsGone) {
  const auto attempt = folder_.invite({0}, {{.number = 2}});
  EXPECT_TRUE(folder_.has_folder(attempt));
  std::filesystem::remove_all(scratch_.path("attempt.0"));
  EXPECT_FALSE(folder_.has_folder(attempt));
  EXPECT_FALSE(folder_.has_room(attempt, 0));
  EXPECT_THROW(folder_.decide(attempt, true), Error);
}

TEST_F(Meeting, KnowsWhoTakesPart) {
  const auto attempt = folder_.invite({0, 1}, {{.number = 2}});
  EXPECT_FALSE(folder_.takes_part(2));
  folder_.arrive(attempt, 1);
  EXPECT_TRUE(folder_.has_arrived(attempt, 1));
  EXPECT_FALSE(folder_.has_arrived(attempt, 2));
  folder_.wait({.number = 2});
  for (int rank = 0; rank < 2; ++rank) folder_.note_part(attempt);  // the first rank and the newcomer
  EXPECT_TRUE(folder_.takes_part(2));
  EXPECT_THAT(folder_.waiting(), IsEmpty());
}

TEST(Newcomer, IsTheSameAfterAWayThroughText) {
  const Newcomer newcomer{.number = 5,
                          .in_place_of = 3,
                          .place = 1,
                          .local_rank = 2,
                          .local_size = 4,
                          .lost_at = std::chrono::system_clock::now()};
  const auto parsed = parse_newcomer(to_text(newcomer));
  EXPECT_EQ(parsed.number, 5);
  EXPECT_EQ(parsed.in_place_of, 3);
  EXPECT_EQ(parsed.place, 1);
  EXPECT_EQ(parsed.local_rank, 2);
  EXPECT_EQ(parsed.local_size, 4);
  EXPECT_EQ(parsed.lost_at, newcomer.lost_at);
}

// A newcomer divides the cores of its host by the number of its shares.
TEST(Newcomer, IsRefusedWithNumbersThatNoneHas) {
  EXPECT_EQ(parse_newcomer("5 -1 1 2 4 9").in_place_of, kNobody);
  for (const char* text : {"", "5 3 1 2 4", "-1 3 1 2 4 9", "5 -2 1 2 4 9", "5 3 -1 2 4 9", "5 3 1 -2 4 9",
                           "5 3 1 2 0 9", "5 3 1 2 4 -9", "5 3 1 2 4 9 x", "5 3 1 2 99999999999 9"}) {
    EXPECT_THROW((void)parse_newcomer(text), Error) << text;
  }
}

}  // namespace
}  // namespace phalanx
