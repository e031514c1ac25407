#include "datasets/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tokens = std::vector<std::int64_t>;

// 320 tokens, trained on twelve sentences by Hugging Face's tokenizers, which also gives the numbers below.
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

TEST(BytePairEncoding, NumbersTextsAsTokenizersDoes) {
  const auto tokenizer = make_tokenizer(kFile);
  EXPECT_EQ(tokenizer->size(), 320);
  for (const auto& [text, tokens] : kKnown) EXPECT_EQ(tokenizer->encode(text), tokens) << text;
}

TEST(BytePairEncoding, GivesTextsBackWhateverTheirBytes) {
  const auto tokenizer = make_tokenizer(kFile);
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * 37 % 256);
  for (const std::string& text :
       {kKnown[2].first, kKnown[1].first, bytes, std::string("\xff\xfe caf\xc3"), std::string(1, '\0')}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  EXPECT_THROW(tokenizer->decode(Tokens{320}), std::out_of_range);
}

// The same tokens from GPT-2's two files.
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
}

TEST(BytePairEncoding, RefusesFilesOfAnotherKind) {
  const auto original = nlohmann::json::parse(read_file(kFile));
  const auto refused = [&](const char* pointer, const nlohmann::json& value, const std::string& why) {
    auto changed = original;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    const std::string file = ::testing::TempDir() + "/tokenizer.json";
    write_atomically(file, changed.dump());
    EXPECT_THAT([&] { make_tokenizer(file); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("tokenizer.json: "), HasSubstr(why))));
  };
  refused("/model/type", "WordPiece", "model: is WordPiece, not BPE");
  refused("/model", 3, "model: is a number, not an object");
  refused("/model/vocab/a", "0", "model.vocab.a: is a string, not a whole number");
  refused("/model/merges/0", nlohmann::json{"x"}, "model.merges[0]: is a merge of 1 tokens, not of 2");
  refused("/pre_tokenizer/type", "Metaspace", "pre_tokenizer: has Metaspace");
  refused("/pre_tokenizer", nullptr, "pre_tokenizer: has nothing");
  refused("/pre_tokenizer/add_prefix_space", true, "add_prefix_space: true");
  refused("/model/merges/0", nlohmann::json{"x", "yz"},
          "a merge has the token \"xyz\", which is not in the vocabulary");
  refused("/model/vocab/a", -4, "has the number -4");
  refused("/model/vocab/a", 200'000'000, "has the number 200000000, but there are");
  EXPECT_THAT([] { make_tokenizer("/no/such"); },
              ThrowsMessage<DataError>(HasSubstr("tokenizer \"/no/such\": neither")));
}

// The tokenizer of kFile with changes to its JSON.
std::unique_ptr<Tokenizer> changed_tokenizer(const std::function<void(nlohmann::json&)>& change) {
  auto json = nlohmann::json::parse(read_file(kFile));
  change(json);
  const std::string file = ::testing::TempDir() + "/changed_tokenizer.json";
  write_atomically(file, json.dump());
  return make_tokenizer(file);
}

std::unique_ptr<Tokenizer> with_special(const std::vector<std::string>& texts) {
  return changed_tokenizer([&](nlohmann::json& json) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      json["added_tokens"].push_back({{"id", 320 + i}, {"content", texts[i]}});
    }
  });
}

TEST(SpecialTexts, TheLongestOfThoseThatBeginFirstIsFound) {
  const auto tokenizer = with_special({"<a", "<a>b", "a>"});
  EXPECT_EQ(tokenizer->encode("<a>b"), Tokens{321});
  EXPECT_EQ(tokenizer->encode("<a>"), (Tokens{320, tokenizer->encode(">").at(0)}));
  EXPECT_EQ(tokenizer->encode("a><a"), (Tokens{322, 320}));
}

TEST(SpecialTexts, AnEmptyOneIsFoundNowhere) {
  EXPECT_EQ(with_special({""})->encode("the cat sat there."), kKnown[0].second);
}

// A search for each text from each place would take hours.
TEST(SpecialTexts, ManyInALongTextAreFoundInOnePass) {
  std::vector<std::string> texts;
  for (int i = 0; i < 256; ++i) texts.push_back("<|reserved_special_token_" + std::to_string(i) + "|>");
  const auto tokenizer = with_special(texts);
  std::string text;
  Tokens expected;
  for (int i = 0; text.size() < 1'000'000; ++i) {
    text += texts[static_cast<std::size_t>(i) % 200] + ".";
    expected.insert(expected.end(), {320 + i % 200, 14});
  }
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(BytePairEncoding, OneLongWordIsMergedAsItsPartsAre) {
  const auto tokenizer = make_tokenizer(kFile);
  const auto part = tokenizer->encode("thethethe");
  std::string word;
  while (word.size() < 900'000) word += "thethethe";
  const auto tokens = tokenizer->encode(word);
  EXPECT_EQ(tokens.size(), part.size() * (word.size() / 9));
  EXPECT_EQ(tokenizer->decode(tokens), word);
}

TEST(BytePairEncoding, APatternThatCannotBeMatchedIsAnErrorWithItsFile) {
  const auto tokenizer = changed_tokenizer([](nlohmann::json& json) {
    const nlohmann::json split{{"type", "Split"}, {"pattern", {{"Regex", "(?:a|aa)+c|x"}}}, {"behavior", "Isolated"}};
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, {{"type", "ByteLevel"}}}}};
  });
  EXPECT_THAT([&] { (void)tokenizer->encode(std::string(60, 'a') + "bc"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("changed_tokenizer.json: its pattern cannot be matched"),
                                             HasSubstr("limit"))));
}

TEST(BytePairEncoding, ADeeplyNestedFileIsRefused) {
  const std::string file = ::testing::TempDir() + "/nested_tokenizer.json";
  write_atomically(file, "{\"model\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}");
  EXPECT_THAT([&] { make_tokenizer(file); }, ThrowsMessage<DataError>(HasSubstr("nested deeper than")));
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
