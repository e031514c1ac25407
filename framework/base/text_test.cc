// SPDX-License-Identifier: Apache-2.0
#include "framework/base/text.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

TEST(Join, PutsTheSeparatorBetweenWordsOnly) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "a", "b"}, ", "), "a, a, b");
}

TEST(Nearest, FindsTheWordWithTheFewestMistakes) {
  EXPECT_EQ(nearest("epohcs", {"max_steps", "epochs"}), "epochs");     // swapped letters
  EXPECT_EQ(nearest("momentun", {"momentum", "moment"}), "momentum");  // a wrong letter
  EXPECT_EQ(nearest("rank", {"seed", "ranks"}), "ranks");              // a letter less
  EXPECT_EQ(nearest("optimiser", {"loader", "optimizer"}), "optimizer");
  EXPECT_EQ(nearest("Weight-Decay", {"weight_decay"}), "weight_decay");
}

TEST(Nearest, CountsASwapAsOneMistake) {
  EXPECT_EQ(nearest("rl", {"lr"}), "lr");
  EXPECT_EQ(nearest("abdc", {"abcd"}), "abcd");
}

TEST(Nearest, FallsBackOnPartsOfWords) {
  EXPECT_EQ(nearest("batch_size", {"global_batch_size", "seed"}), "global_batch_size");
  EXPECT_EQ(nearest("lr", {"slr_extra"}), "");  // too short to mean anything
}

TEST(Nearest, IgnoresVeryLongWords) {
  const std::string as(1'000'000, 'a'), bs(1'000'000, 'b');
  EXPECT_EQ(nearest(as, {bs, "a"}), "");
  EXPECT_EQ(nearest("epohcs", {as, "epochs", bs}), "epochs");
}

TEST(Nearest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest("hidden", {"seed", "epochs"}), "");
  EXPECT_EQ(nearest("a", {"b"}), "");
  EXPECT_EQ(nearest("seed", {}), "");
  EXPECT_EQ(nearest("", {"a"}), "");
}

TEST(FormatText, FormatsLikePrintf) {
  EXPECT_EQ(format_text("%s: %d of %.1f %%", "a", 7, 2.25), "a: 7 of 2.2 %");
  EXPECT_EQ(format_text("%s", ""), "");
}

TEST(FormatText, HasRoomForTextsOfAnyLength) {
  const std::string longer(5000, 'x');
  EXPECT_EQ(format_text("<%s>", longer.c_str()), "<" + longer + ">");
}

TEST(Columns, AreCharactersAndNotBytes) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("aü…▕"), 4u);
}

TEST(Columns, TheLastOnesBeginWithAWholeCharacter) {
  EXPECT_EQ(last_columns("abc", 2), "bc");
  EXPECT_EQ(last_columns("…üa", 2), "üa");
  EXPECT_EQ(last_columns("…üa", 3), "…üa");
  EXPECT_EQ(last_columns("ü", 5), "ü");
  EXPECT_EQ(last_columns("ü", 0), "");
}

TEST(FormatBytes, UsesThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "0.977 KB");
  EXPECT_EQ(format_bytes(1024), "1 KB");
  EXPECT_EQ(format_bytes(64 << 10), "64 KB");
  EXPECT_EQ(format_bytes(3 << 19), "1.5 MB");
  EXPECT_EQ(format_bytes(std::int64_t{5} << 40), "5 TB");
}

TEST(ParseBytes, ReadsUnitsInStepsOf1024) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("12B"), 12);
  EXPECT_EQ(parse_bytes("64KB"), 64 << 10);
  EXPECT_EQ(parse_bytes("1.5 mb"), 3 << 19);
  EXPECT_EQ(parse_bytes("2GiB"), std::int64_t{2} << 30);
}

TEST(ParseBytes, RefusesWhatIsNotAnAmount) {
  for (const char* text : {"", "KB", "-1KB", "nan", "inf", "1 XB", "1 K B", "64KBs", "9e18 TB"}) {
    EXPECT_THROW(parse_bytes(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace phalanx
