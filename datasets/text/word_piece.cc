// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include "datasets/text/token_model.h"
#include "datasets/text/unicode.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

std::int64_t unknown_of(const Vocabulary& vocabulary, const std::string& unknown, const std::string& name) {
  const auto found = vocabulary.find(unknown);
  if (found != vocabulary.end()) return found->second;
  throw DataError(name + ": the unk_token \"" + unknown + "\" is not in the vocabulary");
}

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, std::string unknown, std::string prefix, std::int64_t most, std::string name)
      : vocabulary_(std::move(vocabulary)),
        unknown_(std::move(unknown)),
        prefix_(std::move(prefix)),
        max_(most),
        name_(std::move(name)) {
    for (const auto& [text, token] : vocabulary_) longest_ = std::max(longest_, text.size());
  }

  void append(std::string_view word, std::vector<std::int64_t>& tokens) const override {
    std::int64_t count = 0;
    unicode::for_each_character(word, [&](char32_t, std::size_t, std::size_t) { ++count; });
    const auto before = tokens.size();
    if (count <= max_ && split(word, tokens)) return;
    tokens.resize(before);
    tokens.push_back(unknown_of(vocabulary_, unknown_, name_));
  }

 private:
  bool split(std::string_view word, std::vector<std::int64_t>& tokens) const {
    std::string text;
    for (std::size_t begin = 0; begin < word.size();) {
      auto piece = word.substr(begin, longest_);
      // A character may be cut off at the end. Its bytes are dropped one by one below, because no token ends with them.
      for (; !piece.empty(); piece.remove_suffix(1)) {
        text = begin > 0 ? prefix_ : "";
        text += piece;
        if (const auto found = vocabulary_.find(text); found != vocabulary_.end()) {
          tokens.push_back(found->second);
          break;
        }
      }
      if (piece.empty()) return false;
      begin += piece.size();
    }
    return true;
  }

  Vocabulary vocabulary_;
  std::string unknown_, prefix_;
  std::int64_t max_;
  std::string name_;
  std::size_t longest_ = 0;  // longest token in bytes
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, std::string unknown, std::string name)
      : vocabulary_(std::move(vocabulary)), unknown_(std::move(unknown)), name_(std::move(name)) {}

  void append(std::string_view word, std::vector<std::int64_t>& tokens) const override {
    const auto found = vocabulary_.find(word);
    tokens.push_back(found != vocabulary_.end() ? found->second : unknown_of(vocabulary_, unknown_, name_));
  }

 private:
  Vocabulary vocabulary_;
  std::string unknown_, name_;
};

}  // namespace

std::unique_ptr<TokenModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& prefix, std::int64_t most, const std::string& name) {
  return std::make_unique<WordPiece>(std::move(vocabulary), unknown, prefix, most, name);
}

std::unique_ptr<TokenModel> make_word_level(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& name) {
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown, name);
}

}  // namespace phalanx
