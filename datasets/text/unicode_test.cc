// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx::unicode {
namespace {

TEST(Unicode, CharactersFollowRfc3629) {
  EXPECT_EQ(size_of_character("a"), 1);
  EXPECT_EQ(size_of_character("猫"), 3);
  EXPECT_EQ(size_of_character("🙂"), 4);
  for (const char* text :
       {"", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\xff"}) {
    EXPECT_EQ(size_of_character(text), 0) << text;
  }
}

TEST(Unicode, BytesThatAreNotUtf8AreKept) {
  std::string text = "a\xff猫\xe7\x8c", copy;
  int count = 0;
  for_each_character(text, [&](char32_t code, std::size_t, std::size_t) {
    append(copy, code);
    ++count;
  });
  EXPECT_EQ(copy, text);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(last_character("a\xe7\x8c").code, kFirstByte + 0x8c);
  EXPECT_EQ(last_character("a猫").code, U'猫');
  EXPECT_EQ(normalized("e\u0301\xff"
                       "e\u0301",
                       NormalForm::kNfc),
            "é\xffé");
}

TEST(Unicode, HasNormalForms) {
  EXPECT_EQ(normalized("Å", NormalForm::kNfd), "A\u030a");
  EXPECT_EQ(normalized("a\u0302\u0323", NormalForm::kNfc), "\u1ead") << "marks are put in order";
  EXPECT_EQ(normalized("ﬁ①", NormalForm::kNfkc), "fi1");
  EXPECT_EQ(normalized("ﬁ", NormalForm::kNfc), "ﬁ");
  EXPECT_EQ(normalized("가", NormalForm::kNfd), "\u1100\u1161");
  EXPECT_EQ(normalized("\u32ff", NormalForm::kNfkc), "\u32ff") << "newer than Unicode 12";
  EXPECT_EQ(normalized(std::string("é\0e\u0301", 6), NormalForm::kNfc), std::string("é\0é", 5));
}

TEST(Unicode, LowerCaseMayBeTwoCharacters) {
  std::string text;
  for (const char32_t code : {U'A', U'É', U'İ', U'ẞ', U'Σ', U'\U00010D50'}) append_lower_case(text, code);
  EXPECT_EQ(text, "aéi\u0307ßσ\U00010D70");
}

TEST(Unicode, HasClasses) {
  EXPECT_TRUE(is_white_space(0x3000) && is_white_space(0x85));
  EXPECT_FALSE(is_white_space(0x200b) || is_white_space(0x180e));
  EXPECT_TRUE(is_punctuation('$') && is_punctuation(U'。'));
  EXPECT_FALSE(is_punctuation(U'€'));
  EXPECT_TRUE(is_numeric(U'½') && is_numeric(U'٣'));
  EXPECT_FALSE(is_numeric(U'三'));
  EXPECT_TRUE(is_word('_') && is_word(U'猫') && is_word(0x301));
  EXPECT_TRUE(is_chinese(U'猫'));
  EXPECT_FALSE(is_chinese(U'か'));
  EXPECT_TRUE(is_control(0) && is_control(0xfffd));
  EXPECT_FALSE(is_control('\n'));
}

}  // namespace
}  // namespace phalanx::unicode
