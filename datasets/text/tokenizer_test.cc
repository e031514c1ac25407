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
  refused("/model/type", "WordPiece", "its model is WordPiece, not BPE");
  refused("/model", 3, "not a byte-level BPE as tokenizers write it");
  refused("/pre_tokenizer/type", "Metaspace", "its pre_tokenizer has Metaspace");
  refused("/pre_tokenizer", nullptr, "its pre_tokenizer has nothing");
  refused("/pre_tokenizer/add_prefix_space", true, "add_prefix_space: true");
  refused("/model/merges/0", nlohmann::json{"x", "yz"},
          "a merge has the token \"xyz\", which is not in the vocabulary");
  refused("/model/vocab/a", -4, "has the number -4");
  EXPECT_THAT([] { make_tokenizer("/no/such"); },
              ThrowsMessage<DataError>(HasSubstr("tokenizer \"/no/such\": neither")));
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
