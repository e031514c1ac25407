// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/rank_notice.h"

#include <gmock/gmock.h>

#include "launch/agents/beats.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

TEST(RankNotices, ArriveAmongTextAndBeats) {
  BeatReader reader;
  const auto read = reader.read("Epoch " + to_text({.number = 3, .lost = true}) + "1\n" + beat_text(7) +
                                to_text(RankNotice{.number = 12, .status = 124}));
  EXPECT_EQ(read.text, "Epoch 1\n");
  EXPECT_THAT(read.beats, ElementsAre(7));
  ASSERT_THAT(read.lines, ElementsAre("lost 3", "ended 12 124"));
  EXPECT_TRUE(parse_rank_notice(read.lines[0])->lost);
  EXPECT_EQ(parse_rank_notice(read.lines[0])->number, 3);
  EXPECT_FALSE(parse_rank_notice(read.lines[1])->lost);
  EXPECT_EQ(parse_rank_notice(read.lines[1])->number, 12);
  EXPECT_EQ(parse_rank_notice(read.lines[1])->status, 124);
}

TEST(RankNotices, OfAnyLengthAreNotKept) {
  BeatReader reader;
  EXPECT_THAT(reader.read(std::string(1, '\0') + std::string(1000, 'x') + "\n").lines, ::testing::IsEmpty());
  EXPECT_THAT(reader.read(to_text(RankNotice{.number = 3})).lines, ElementsAre("ended 3 0"));
}

TEST(RankNotices, AreNothingElse) {
  for (const char* line :
       {"", "lost", "lost ", "lost 3a", "lost3", "found 3", "lost 3 1", "ended", "ended 3", "ended 3 ", "ended 3 1 2",
        "ended x 1", "lost -1", "lost 4294967297", "ended 4294967297 1", "ended 3 -1"}) {
    EXPECT_FALSE(parse_rank_notice(line)) << line;
  }
}

}  // namespace
}  // namespace phalanx
