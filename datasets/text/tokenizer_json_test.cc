// SPDX-License-Identifier: Apache-2.0
// make_testing_tokenizers.py computes the expected numbers with Hugging Face's tokenizers 0.23.
#include "datasets/text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Json = nlohmann::json;
using Tokens = std::vector<std::int64_t>;

Json known() {
  static const Json json = Json::parse(read_file("datasets/text/testing_tokenizers.json"));
  return json;
}

std::unique_ptr<Tokenizer> tokenizer_of(const Json& json) {
  const std::string file = ::testing::TempDir() + "/case.json";
  write_atomically(file, json.dump());
  return read_tokenizer_json(file);
}

Json file_of(const std::string& name) {
  const auto all = known();
  for (const auto& entry : all.at("tokenizers")) {
    if (entry.at("name") == name) return entry.at("file");
  }
  throw std::out_of_range(name);
}

TEST(TokenizerJson, GivesTheTokensOfTheLibrary) {
  const auto all = known();
  const auto texts = all.at("texts").get<std::vector<std::string>>();
  ASSERT_EQ(all.at("tokenizers").size(), 46);
  for (const auto& entry : all.at("tokenizers")) {
    const auto tokenizer = tokenizer_of(entry.at("file"));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer->encode(texts[i]), entry.at("numbers").at(i).get<Tokens>())
          << entry.at("name") << ": " << texts[i];
    }
  }
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  const auto refused = [&](const std::string& name, const char* pointer, const Json& value, const std::string& what) {
    auto json = file_of(name);
    json[Json::json_pointer(pointer)] = value;
    EXPECT_THAT([&] { tokenizer_of(json); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("case.json: "), HasSubstr(what))));
  };
  refused("NFC", "/normalizer/type", "Nfx", "normalizer: Nfx is not supported");
  refused("NFC", "/model/type", "Other", "model: Other is not supported");
  refused("NFC", "/model/dropout", 0.1, "model: dropout");
  refused("NFC", "/decoder", {{"type", "CTC"}}, "decoder: CTC");
  refused("NFC", "/decoder", {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}, "decoder: Strip at the");
  refused("NFC", "/added_tokens/0/id", 3, "added_tokens[0]: the number 3 of \"<mask>\"");
  refused("Whitespace", "/pre_tokenizer/type", "UnicodeScripts", "pre_tokenizer: UnicodeScripts");
  refused("Split Isolated False", "/pre_tokenizer/behavior", "Other", "pre_tokenizer.behavior: the behavior Other");
  refused("Metaspace first", "/normalizer", {{"type", "Prepend"}, {"prepend", "x"}}, "prepend_scheme first after");
  for (const char* pattern : {"a{2}+", "(?<n>a)", "[a&&b]", "\\1", "\\p{Klingon}", "x(?i)y", "\\X", "[[:alpha:]]"}) {
    refused("Split Isolated False", "/pre_tokenizer/pattern", {{"Regex", pattern}},
            "pre_tokenizer.pattern.Regex: the regular expression's ");
  }
}

std::string decoded(const Json& decoder, const std::vector<std::string>& pieces) {
  auto json = file_of("Metaspace in one");
  json["decoder"] = decoder;
  Tokens tokens;
  for (const auto& piece : pieces) {
    const auto vocabulary = json.at("model").at("vocab");
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      if (vocabulary[i][0] == piece) tokens.push_back(static_cast<std::int64_t>(i));
    }
  }
  EXPECT_EQ(tokens.size(), pieces.size());
  return tokenizer_of(json)->decode(tokens);
}

TEST(Decoder, PutsPiecesTogether) {
  const std::vector<std::string> words{"▁the", "▁cat", "▁", "x"};
  EXPECT_EQ(decoded({{"type", "Metaspace"}, {"replacement", "▁"}}, words), "the cat x");
  EXPECT_EQ(decoded({{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "never"}}, words), " the cat x");
  EXPECT_EQ(decoded(nullptr, {"the", "cat"}), "the cat");
  const Json pieces{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  EXPECT_EQ(decoded(pieces, {"the", "c", "##at", ".", "don", "'t"}), "the cat. don 't");
  EXPECT_EQ(decoded({{"type", "BPEDecoder"}, {"suffix", "</w>"}}, {"c", "at</w>", "at</w>"}), "cat at");
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"Ġthe", "Ã", "©", "東"}), " the\xc3\xa9東");
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  const Json strip{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  const Json llama{{"type", "Sequence"},
                   {"decoders", {replace, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}, strip}}};
  EXPECT_EQ(decoded(llama, {"▁the", "<0xE7>", "<0x8C>", "<0xAB>", "▁cat"}), "the猫 cat");
  EXPECT_EQ(decoded(llama, {"▁", "<0xE7>"}), "\xe7") << "the first byte of a character";
}

TEST(TokenizerJson, TakesLittleTimeForALongWord) {
  for (const char* name : {"NFC", "Metaspace in one", "WhitespaceSplit", "byte_fallback"}) {
    EXPECT_FALSE(tokenizer_of(file_of(name))->encode(std::string(300'000, 'x')).empty()) << name;
  }
}

TEST(TokenizerJson, KeepsBytesThatAreNotUtf8) {
  const auto tokenizer = tokenizer_of(file_of("Metaspace in one"));
  const auto tokens = tokenizer->encode("a\xff");
  const auto first = tokenizer->encode("\xc3\xa9\xff");
  EXPECT_EQ(tokens.back(), first.back()) << "<0xFF>";
}

}  // namespace
}  // namespace phalanx
