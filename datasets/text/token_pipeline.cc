// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/token_pipeline.h"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns the added tokens whose `normalized` has this value, with the text to search for. The pipeline decodes them to
// that text, as the library does.
std::vector<AddedToken> tokens_found_in_text(TokenPipeline& pipeline, bool normalized, const std::string& name) {
  std::vector<AddedToken> tokens;
  for (const auto& token : pipeline.added) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    if (normalized && pipeline.normalizer) pipeline.normalizer->apply(tokens.back().text);
    if (tokens.back().text != token.text) {
      pipeline.texts[static_cast<std::size_t>(token.token)] = TokenText{tokens.back().text};
    }
    if (tokens.back().text.empty()) {
      throw ConfigError(name + ": the added token \"" + token.text + "\" (" + std::to_string(token.token) +
                        ") is empty once it is normalized, which is not supported");
    }
  }
  return tokens;
}

class Pipeline final : public Tokenizer {
 public:
  Pipeline(TokenPipeline pipeline, const std::string& name)
      : pipeline_(std::move(pipeline)),
        in_text_(tokens_found_in_text(pipeline_, /*normalized=*/false, name)),
        in_normalized_(tokens_found_in_text(pipeline_, /*normalized=*/true, name)) {}

  std::int64_t size() const override { return std::ssize(pipeline_.texts); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    WordCache cache;
    const auto added = [&](std::int64_t token) { tokens.push_back(token); };
    in_text_.find(text, added, [&](std::string_view rest, std::size_t begin) {
      std::string normalized;
      if (pipeline_.normalizer) {
        normalized = rest;
        pipeline_.normalizer->apply(normalized);
        rest = normalized;
      }
      in_normalized_.find(rest, added, [&](std::string_view part, std::size_t at) {
        append_words(part, begin == 0 && at == 0, cache, tokens);
      });
    });
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::vector<TokenText> texts;
    for (const auto token : tokens) {
      if (token < 0 || token >= size()) {
        throw std::out_of_range("token " + std::to_string(token) + " is out of range; the number of tokens is " +
                                std::to_string(size()));
      }
      const auto& text = pipeline_.texts[static_cast<std::size_t>(token)];
      if (text) texts.push_back(*text);
    }
    if (!texts.empty()) pipeline_.decoder->apply(texts);
    std::string all;
    for (const auto& [text, added] : texts) all += text;
    return all;
  }

 private:
  using WordCache = ByText<std::vector<std::int64_t>>;

  void append_words(std::string_view text, bool is_first, WordCache& cache, std::vector<std::int64_t>& tokens) const {
    const PreTokenizer::Word append = [&](std::string_view word, bool) { append_word(word, cache, tokens); };
    if (pipeline_.pre_tokenizer) {
      pipeline_.pre_tokenizer->split(text, is_first, append);
    } else {
      append(text, is_first);
    }
  }

  // Caches the tokens of words, because most words of a text occur several times.
  void append_word(std::string_view word, WordCache& cache, std::vector<std::int64_t>& tokens) const {
    constexpr std::size_t kLongest = 64, kMost = std::size_t{1} << 18;
    if (word.empty()) return;
    if (const auto found = cache.find(word); found != cache.end()) {
      tokens.insert(tokens.end(), found->second.begin(), found->second.end());
      return;
    }
    const auto before = std::ssize(tokens);
    pipeline_.model->append(word, tokens);
    if (word.size() > kLongest || cache.size() >= kMost) return;
    cache.emplace(word, std::vector(tokens.begin() + before, tokens.end()));
  }

  TokenPipeline pipeline_;
  AddedTokens in_text_, in_normalized_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(TokenPipeline pipeline, const std::string& name) {
  return std::make_unique<Pipeline>(std::move(pipeline), name);
}

}  // namespace phalanx
