// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/beats.h"

#include <gmock/gmock.h>

#include <string>

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LeaseLength, IsThatOfTheConfigIfTheOthersGoOn) {
  EXPECT_EQ(lease_length(true, 7), seconds(7));
  EXPECT_EQ(lease_length(true, 0.5), seconds(5));
  EXPECT_EQ(lease_length(false, 7), seconds(20));
  EXPECT_GT(lease_length(true, 1e300), seconds(0));
}

TEST(AgentLease, BeginsWithoutAnAnswer) { EXPECT_EQ(AgentLease(seconds(5), seconds(100)).end(), seconds(105)); }

TEST(AgentLease, CountsFromTheTimeAtWhichABeatWasSent) {
  AgentLease lease(seconds(5), seconds(100));
  const auto first = lease.send(seconds(101)), second = lease.send(seconds(102));
  lease.answered(second);
  EXPECT_EQ(lease.end(), seconds(107));
  lease.answered(first);
  EXPECT_EQ(lease.end(), seconds(107)) << "an older answer does not shorten it";
}

TEST(AgentLease, IsNotExtendedByWhatItHasNotSent) {
  AgentLease lease(seconds(5), seconds(100));
  const auto beat = lease.send(seconds(101));
  lease.answered(beat + 1);
  lease.answered(0);
  EXPECT_EQ(lease.end(), seconds(105));
}

TEST(AgentLease, IsNotExtendedByAnswersThatWereTooLongOnTheWay) {
  AgentLease lease(seconds(5), seconds(100));
  const auto beat = lease.send(seconds(101));
  (void)lease.send(seconds(200));
  lease.answered(beat);
  EXPECT_LT(lease.end(), seconds(200));
}

TEST(HostBeats, AreMissedOnlyAfterTheFirst) {
  const HostBeats::Clock::time_point start{};
  HostBeats beats(seconds(5));
  EXPECT_FALSE(beats.is_silent(start + std::chrono::hours(1)));
  beats.heard(start);
  const auto limit = silence_of_lost_host(seconds(5));
  EXPECT_FALSE(beats.is_silent(start + limit - nanoseconds(1)));
  EXPECT_TRUE(beats.is_silent(start + limit));
  EXPECT_NEAR(beats.silent_for(start + seconds(3)), 3, 1e-9);
}

TEST(HostBeats, AreMissedIfTheFirstOneDoesNotComeInTime) {
  const HostBeats::Clock::time_point due{seconds(100)};
  const auto limit = silence_of_lost_host(seconds(5));
  HostBeats none(seconds(5)), some(seconds(5));
  none.expect_by(due);
  EXPECT_FALSE(none.is_silent(due + limit - nanoseconds(1)));
  EXPECT_TRUE(none.is_silent(due + limit));
  some.expect_by(due);
  some.heard(due - seconds(20));
  EXPECT_TRUE(some.is_silent(due - seconds(20) + limit)) << "a beat has come";
}

// The agent sends a beat, the launcher gets it at once and answers, and the answer arrives at any time before the lease
// of the agent is over.
TEST(HostBeats, AreMissedOnlyWhenTheLeaseIsOver) {
  for (const auto length : {seconds(2), seconds(5), seconds(100)}) {
    for (int tenths = 0; tenths < 10; ++tenths) {
      AgentLease lease(length, seconds(0));
      HostBeats beats(length);
      const auto sent = length * tenths / 10;
      const auto beat = lease.send(sent);
      const HostBeats::Clock::time_point start{};
      beats.heard(start + sent);
      lease.answered(beat);
      const auto killed = lease.end() + beat_interval(length);
      EXPECT_FALSE(beats.is_silent(start + killed));
      EXPECT_TRUE(beats.is_silent(start + killed + length));
    }
  }
}

TEST(BeatReader, TakesBeatsOutOfText) {
  BeatReader reader;
  const auto result = reader.read("Epoch " + beat_text(7) + "1\n" + beat_text(8));
  EXPECT_EQ(result.text, "Epoch 1\n");
  EXPECT_THAT(result.beats, ElementsAre(7, 8));
}

TEST(BeatReader, TakesBeatsThatArriveInParts) {
  BeatReader reader;
  std::string text;
  std::vector<std::int64_t> beats;
  for (const char c : "a" + beat_text(123) + "b") {
    auto result = reader.read(std::string_view(&c, 1));
    text += result.text;
    beats.insert(beats.end(), result.beats.begin(), result.beats.end());
  }
  EXPECT_EQ(text, "ab");
  EXPECT_THAT(beats, ElementsAre(123));
}

TEST(BeatReader, DropsWhatIsNoBeat) {
  BeatReader reader;
  const auto result = reader.read(std::string("\0dead 7\nx\0alive 7a\ny\0alive \n", 28));
  EXPECT_EQ(result.text, "xy");
  EXPECT_THAT(result.beats, IsEmpty());
}

}  // namespace
}  // namespace phalanx
