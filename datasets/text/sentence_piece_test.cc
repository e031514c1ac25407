// SPDX-License-Identifier: Apache-2.0
// make_testing_models.py makes the models and the expected numbers with Python's sentencepiece 0.2.3.
#include "datasets/text/sentence_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tokens = std::vector<std::int64_t>;

const std::string kUnigram = "datasets/text/testing_unigram.model", kBpe = "datasets/text/testing_bpe.model";

struct Known {
  std::string text;
  Tokens tokens;
  std::string decoded;
};

// A model without byte tokens and with its own normalization.
const std::vector<Known> kOfUnigram{
    {"the cat sat there.", {8, 23, 13, 12, 17, 0}, "the cat sat there ⁇ "},
    {"  it's   what\n\nwe've heard: 1990s & 42!",
     {10, 39, 0, 4, 29, 60, 12, 29, 11, 0, 20, 11, 25, 15, 9, 51, 7, 47, 32, 32, 46, 4, 7, 0, 7, 49, 48, 0},
     "it ⁇ s what we ⁇ ve heard: 1990s  ⁇  42 ⁇ "},
    {"naïve übercafé 東京 🙂", {40, 35, 55, 20, 11, 7, 54, 34, 62, 35, 14, 53, 7, 0, 7, 0}, "naïve übercafé  ⁇   ⁇ "},
    {"ＡＢ the ﬁsh", {6, 61, 8, 7, 14, 64, 4, 60}, "ab the fish"},
    {"one<sep>the other<sep>", {38, 11, 3, 39, 60, 11, 19, 44, 3}, "one<sep>the other<sep>"},
    {"", {}, ""},
    {"\ttabs\tand trailing   ", {7, 39, 35, 61, 4, 6, 5, 9, 7, 39, 66, 35, 64, 65, 64, 5, 30}, "tabs and trailing"},
};

// A model with byte tokens and without normalization: decode() returns the same texts.
const std::vector<std::pair<std::string, Tokens>> kOfBpe{
    {"the cat sat there.", {262, 290, 314, 281, 50}},
    {"  it's   what\n\nwe've heard: 1990s & 42!", {328, 328, 269, 331, 43,  334, 328, 328, 272, 305, 14, 14,  343, 329,
                                                   43,  285, 320, 355, 328, 325, 349, 350, 334, 328, 42, 328, 326, 37}},
    {"naïve übercafé 東京 🙂",
     {299, 330, 358, 285, 328, 359, 302, 344, 327, 357, 328, 234, 161, 181, 232, 190, 176, 328, 244, 163, 157, 134}},
    {"ＡＢ the ﬁsh", {328, 243, 192, 165, 243, 192, 166, 262, 328, 243, 176, 133, 334, 332}},
    {"one<sep>the other<sep>", {312, 329, 3, 331, 260, 270, 331, 260, 335, 3}},
    {"", {}},
    {"\ttabs\tand trailing   ",
     {328, 13, 331, 330, 346, 334, 13, 330, 266, 261, 335, 330, 341, 338, 341, 297, 328, 328, 328}},
};

TEST(SentencePiece, UnigramTokenizesTextsAsThePythonLibraryDoes) {
  const auto tokenizer = make_tokenizer(kUnigram);
  EXPECT_EQ(tokenizer->size(), 69);
  for (const auto& [text, tokens, decoded] : kOfUnigram) {
    EXPECT_EQ(tokenizer->encode(text), tokens) << text;
    EXPECT_EQ(tokenizer->decode(tokens), decoded);
  }
}

TEST(SentencePiece, BpeTokenizesTextsAsThePythonLibraryDoes) {
  const auto tokenizer = make_tokenizer(kBpe);
  EXPECT_EQ(tokenizer->size(), 360);
  for (const auto& [text, tokens] : kOfBpe) {
    EXPECT_EQ(tokenizer->encode(text), tokens) << text;
    EXPECT_EQ(tokenizer->decode(tokens), text);
  }
}

TEST(SentencePiece, ControlTokensHaveNoText) {
  const auto tokenizer = make_tokenizer(kBpe);
  EXPECT_EQ(tokenizer->decode(Tokens{1, 262, 290, 2}), "the cat") << "<s> ▁the ▁cat </s>";
  EXPECT_THROW(tokenizer->decode(Tokens{360}), std::out_of_range);
  EXPECT_THROW(tokenizer->decode(Tokens{-1}), std::out_of_range);
}

TEST(SentencePiece, TextsMayBeDecodedTokenByToken) {
  const auto tokenizer = make_tokenizer(kBpe);
  const auto& [text, tokens] = kOfBpe[2];
  std::string joined = tokenizer->decode(std::array{tokens[0]});
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const auto before = tokenizer->decode(std::array{tokens[i - 1]});
    joined += tokenizer->decode(std::array{tokens[i - 1], tokens[i]}).substr(before.size());
  }
  EXPECT_EQ(joined, text);
}

// 100,000 lines, 1.8 MB, which are cut into parts.
TEST(SentencePiece, ALongTextHasTheTokensOfItsLines) {
  for (const auto& [file, line_feed] : {std::pair{kUnigram, Tokens{}}, std::pair{kBpe, Tokens{14}}}) {
    const auto tokenizer = make_tokenizer(file);
    const std::string line = "the cat sat there";
    const Tokens alone = tokenizer->encode(line);
    // After a line feed that is kept, a line begins without a space.
    Tokens next = alone;
    if (!line_feed.empty()) {
      next = tokenizer->encode("\n" + line);
      ASSERT_EQ(next[0], 328) << "▁";
      next.erase(next.begin());
    }
    std::string text = line;
    Tokens expected = alone;
    for (int i = 1; i < 100'000; ++i) {
      text += "\n" + line;
      expected.insert(expected.end(), next.begin(), next.end());
    }
    EXPECT_EQ(tokenizer->encode(text), expected) << file;
  }
}

TEST(SentencePiece, MayHaveNoPieceForASpace) {
  const auto tokenizer = make_tokenizer("datasets/text/testing_japanese.model");
  EXPECT_EQ(tokenizer->encode("吾輩は猫である。"), (Tokens{25, 37, 7, 35, 5, 29, 32, 4}));
  EXPECT_EQ(tokenizer->decode(Tokens{25, 37, 7, 35, 5, 29, 32, 4}), "吾輩は猫である。");
  EXPECT_EQ(tokenizer->encode("猫 は"), (Tokens{35, 0, 7}));
  EXPECT_EQ(tokenizer->decode(Tokens{35, 0, 7}), "猫 ⁇ は");
}

TEST(SentencePiece, IsFoundInAFolder) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "llama";
  std::filesystem::create_directories(folder);
  write_atomically(folder / "tokenizer.json", "{}");
  for (const char* name : {"spiece.model", "tokenizer.model"}) {
    write_atomically(folder / name, read_file(kBpe));
    EXPECT_EQ(make_tokenizer(folder)->size(), 360);
  }
}

TEST(SentencePiece, RefusesOtherFiles) {
  const auto path = ::testing::TempDir() + "/other.model";
  for (const std::string& bytes : {std::string(), std::string("# a text"), read_file(kBpe).substr(0, 3000)}) {
    write_atomically(path, bytes);
    EXPECT_THAT([&] { make_tokenizer(path); },
                ThrowsMessage<DataError>(HasSubstr("other.model: not a model that SentencePiece's")));
  }
}

TEST(SentencePiece, RefusesModelsThatChangeTextsAfterDecoding) {
  EXPECT_THAT([] { make_tokenizer("datasets/text/testing_denormalizer.model"); },
              ThrowsMessage<DataError>(
                  HasSubstr("testing_denormalizer.model: has rules for the text of its pieces (a denormalizer)")));
}

}  // namespace
}  // namespace phalanx
