// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tokens = std::vector<std::int64_t>;

// Has 320 tokens, trained on twelve sentences by Hugging Face's tokenizers, which also compute the numbers below.
const std::string kFile = "datasets/text/testing_tokenizer.json";

const std::vector<std::pair<std::string, Tokens>> kKnown{
    {"the cat sat there.", {297, 269, 259, 272, 271, 14}},
    {"  it's   what\n\nwe've heard: 1990s & 42!", {221, 261, 84, 274, 221, 221, 264, 265, 199, 199, 87, 69, 275,
                                                   311, 283, 68, 26,  312, 277, 83,  221, 6,   221, 20, 18, 1}},
    {"naïve übercafé 東京 🙂",
     {292, 300, 318, 82, 67, 279, 267, 221, 163, 252, 110, 161, 119, 106, 221, 173, 254, 248, 225}},
    {"for (int i = 0; i < n; ++i)", {288, 82, 304, 289, 84, 261, 307, 305, 27, 261, 306, 308, 27, 268, 11, 73, 9}},
    {"one<|endoftext|>the other<|endoftext|>", {293, 69, 0, 297, 221, 79, 297, 82, 0}},
    {"", {}},
    {"\t tabs\tand trailing   ", {198, 258, 65, 66, 83, 198, 282, 68, 258, 82, 280, 76, 289, 71, 221, 221, 221}},
};

TEST(BytePairEncoding, TokenizesTextsAsThePythonLibraryDoes) {
  const auto tokenizer = make_tokenizer(kFile);
  EXPECT_EQ(tokenizer->size(), 320);
  for (const auto& [text, tokens] : kKnown) EXPECT_EQ(tokenizer->encode(text), tokens) << text;
}

TEST(BytePairEncoding, RestoresTextsOfAnyBytes) {
  const auto tokenizer = make_tokenizer(kFile);
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * 37 % 256);
  for (const std::string& text :
       {kKnown[2].first, kKnown[1].first, bytes, std::string("\xff\xfe caf\xc3"), std::string(1, '\0')}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  EXPECT_THROW(tokenizer->decode(Tokens{320}), std::out_of_range);
}

// The same tokens in the two files of GPT-2's format.
TEST(BytePairEncoding, ReadsVocabularyAndMerges) {
  const auto model = nlohmann::json::parse(read_file(kFile)).at("model");
  const auto folder = std::filesystem::path(::testing::TempDir()) / "gpt2";
  std::filesystem::create_directories(folder);
  write_atomically(folder / "vocab.json", model.at("vocab").dump());
  std::string merges = "#version: 0.2\n";
  for (const auto& pair : model.at("merges")) {
    merges += pair.at(0).get<std::string>() + " " + pair.at(1).get<std::string>() + "\n";
  }
  write_atomically(folder / "merges.txt", merges);
  const auto tokenizer = make_tokenizer(folder);
  for (const auto& [text, tokens] : kKnown) EXPECT_EQ(tokenizer->encode(text), tokens) << text;
  // The format of text files on Windows: a byte order mark and CRLF.
  std::string of_windows = "\xef\xbb\xbf";
  for (const char letter : merges) of_windows += letter == '\n' ? std::string("\r\n") : std::string(1, letter);
  write_atomically(folder / "merges.txt", of_windows);
  const auto same = make_tokenizer(folder);
  for (const auto& [text, tokens] : kKnown) EXPECT_EQ(same->encode(text), tokens) << text;
}

TEST(BytePairEncoding, RefusesFilesOfAnotherKind) {
  const auto original = nlohmann::json::parse(read_file(kFile));
  const auto refused = [&](const char* pointer, const nlohmann::json& value, const std::string& why) {
    auto changed = original;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    const std::string file = ::testing::TempDir() + "/tokenizer.json";
    write_atomically(file, changed.dump());
    EXPECT_THAT([&] { make_tokenizer(file); },
                ThrowsMessage<Error>(AllOf(HasSubstr("tokenizer.json: "), HasSubstr(why))));
  };
  refused("/model", 3, "model: ");
  refused("/model/merges/0", nlohmann::json{"x", "yz"}, "a merge has the token \"yz\", which is not in the vocabulary");
  refused("/model/merges/0", nlohmann::json{"x", "y", "z"}, "model.merges[0]: has 3 tokens");
  refused("/model/vocab/a", -4, "has the number -4");
  refused("/model/vocab/a", 200'000'000, "has the number 200000000");
  refused("/model/vocab/a", 1.5, "model.vocab.a: ");
  refused("/added_tokens/0/id", 200'000'000, "the number 200000000 of");
  refused("/added_tokens/0/content", "", "has no text");
  refused("/added_tokens/0", nlohmann::json::object(), "added_tokens[0]");
  refused("/pre_tokenizer", nlohmann::json::object(), "pre_tokenizer: ");
  EXPECT_THAT([] { make_tokenizer("/no/such"); },
              ThrowsMessage<DataError>(HasSubstr("tokenizer \"/no/such\": neither")));
}

// Returns the tokenizer in kFile with special tokens, the k-th of which has the number 320 + k, and with `pattern` if
// it is not empty.
std::unique_ptr<Tokenizer> changed_tokenizer(const std::vector<std::string>& special, const std::string& pattern = "") {
  auto json = nlohmann::json::parse(read_file(kFile));
  for (std::size_t i = 0; i < special.size(); ++i) {
    json["added_tokens"].push_back({{"id", 320 + i}, {"content", special[i]}, {"normalized", false}});
  }
  if (!pattern.empty()) {
    const nlohmann::json split{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
    const nlohmann::json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  }
  const std::string file = ::testing::TempDir() + "/changed.json";
  write_atomically(file, json.dump());
  return make_tokenizer(file);
}

// The expected numbers were computed by Hugging Face's tokenizers.
TEST(SpecialTokens, AreTheLeftmostAndThenTheLongest) {
  const auto tokenizer = changed_tokenizer({"ab", "abc", "bcd", "cde", "abcdef", "de", "xx", "xxxx"});
  EXPECT_EQ(tokenizer->encode("abcdeabcdefbcdxxxxxxxabd"), (Tokens{321, 325, 324, 322, 327, 326, 88, 320, 68}));
  EXPECT_EQ(tokenizer->encode("zabcab"), (Tokens{90, 321, 320}));
}

// A search for each token after each occurrence of each token would take hours.
TEST(SpecialTokens, TakeLinearTime) {
  std::vector<std::string> special;
  for (int i = 0; i < 256; ++i) special.push_back("<|reserved_special_token_" + std::to_string(i) + "|>");
  special.push_back(std::string(20'000, 'q') + "r");
  const auto tokenizer = changed_tokenizer(special);
  std::string text;
  Tokens expected;
  for (std::size_t i = 0; i < 40'000; ++i) {
    text += special[i % 250];
    expected.push_back(320 + static_cast<std::int64_t>(i % 250));
  }
  text += std::string(200'000, 'q');
  const auto tokens = tokenizer->encode(text);
  ASSERT_GT(tokens.size(), expected.size());
  EXPECT_EQ(Tokens(tokens.begin(), tokens.begin() + std::ssize(expected)), expected);
}

TEST(BytePairEncoding, MergesAWordOfAnyLengthInLittleTime) {
  const auto tokenizer = make_tokenizer(kFile);
  std::string word;
  for (int i = 0; i < 300'000; ++i) word += "thecatsat"[i * i % 9];
  const auto tokens = tokenizer->encode(word);
  EXPECT_LT(tokens.size(), word.size());
  EXPECT_EQ(tokenizer->decode(tokens), word);
}

// If PCRE2 had only its own stack, the rest of the text would become one word.
TEST(WordPattern, CutsWordsOfAnyLength) {
  const auto tokenizer = changed_tokenizer({}, R"((?:\p{L}\p{M}*)+|.)");
  const std::string word(100'000, 'x'), text = word + "1990";
  Tokens expected(word.size(), 88);
  expected.insert(expected.end(), {17, 25, 25, 16});  // four words; the tokens would differ if 1990 were one word
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(WordPattern, NamesItsFileWhenItGivesUp) {
  const auto tokenizer = changed_tokenizer({}, "(?:a+)+(?:b|cc)");
  EXPECT_THAT([&] { tokenizer->encode(std::string(60, 'a') + " and more"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("changed.json: its regular expression"), HasSubstr("byte 0"),
                                             HasSubstr("match limit"))));
}

TEST(SpecialTokens, AreFoundBeforeOthersThatAreAdded) {
  auto json = nlohmann::json::parse(read_file(kFile));
  json["added_tokens"].push_back({{"id", 320}, {"content", "bc"}, {"normalized", false}});
  json["added_tokens"].push_back({{"id", 321}, {"content", "abc"}, {"normalized", true}});
  const std::string file = ::testing::TempDir() + "/added.json";
  write_atomically(file, json.dump());
  EXPECT_EQ(make_tokenizer(file)->encode("abcd"), (Tokens{65, 320, 68}));
}

TEST(WordPattern, KeepsTextAroundEmptyMatches) {
  const auto tokenizer = changed_tokenizer({}, "x*");
  for (const std::string text : {"axxb", "\xc3\xa9t\xc3\xa9 x", "a\xff\xfe x\xc3"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(Bytes, AreTheirOwnNumbers) {
  const auto tokenizer = make_tokenizer("bytes");
  EXPECT_EQ(tokenizer->size(), 256);
  EXPECT_EQ(tokenizer->encode("a\xff"), (Tokens{97, 255}));
  EXPECT_EQ(tokenizer->decode(Tokens{97, 255}), "a\xff");
  EXPECT_THROW(tokenizer->decode(Tokens{256}), std::out_of_range);
}

}  // namespace
}  // namespace phalanx
