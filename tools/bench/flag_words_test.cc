// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/flag_words.h"

#include <gmock/gmock.h>

#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(FlagWords, AreSeparatedByCommas) {
  EXPECT_THAT(words_of("a,,b:2,a,"), ElementsAre("a", "b:2", "a"));
  EXPECT_THAT(words_of(""), IsEmpty());
}

TEST(FlagWords, AreChosenOnceInTheOrderGiven) {
  EXPECT_THAT(choose("x", "ring,tree,ring", {"tree", "ring"}), ElementsAre("ring", "tree"));
  EXPECT_THAT(choose("x", "anything,goes"), ElementsAre("anything", "goes"));
  EXPECT_EQ(choose_one("x", "on", {"on", "off"}), "on");
}

TEST(FlagWords, UnknownOnesAreRefusedWithTheNearest) {
  EXPECT_THAT([] { choose("way", "rimg", {"tree", "ring"}); },
              ThrowsMessage<ConfigError>("--way: \"rimg\" is not one of tree, ring; did you mean \"ring\"?"));
}

TEST(FlagWords, EmptyOnesAreRefusedUnlessOptional) {
  EXPECT_THAT(choose_any("way", "", {"tree"}), IsEmpty());
  EXPECT_THAT([] { choose("way", ",", {"tree", "ring"}); },
              ThrowsMessage<ConfigError>("--way is empty; choose from tree, ring"));
  EXPECT_THAT([] { choose_one("way", "tree,ring", {"tree", "ring"}); },
              ThrowsMessage<ConfigError>(HasSubstr("expected one of tree, ring, got \"tree,ring\"")));
}

}  // namespace
}  // namespace phalanx::bench
