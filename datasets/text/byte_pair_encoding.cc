// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/byte_pair_encoding.h"

#include <cstddef>

#include "datasets/text/merges.h"
#include "datasets/text/unicode.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

class BytePairEncoding final : public TokenModel {
 public:
  BytePairEncoding(BytePairs pairs, const std::string& name)
      : pairs_(std::move(pairs)), name_(name), bytes_(pairs_.vocabulary) {
    for (const auto& [left, right] : pairs_.merges) {
      if (right.size() < pairs_.prefix.size()) {
        throw DataError(name_ + ": a merge has the token \"" + right + "\", which does not begin with \"" +
                        pairs_.prefix + '"');
      }
      const auto first = number_of(left), second = number_of(right);
      merges_.add(first, second, number_of(left + right.substr(pairs_.prefix.size())));
    }
    pairs_.merges.clear();
  }

  void append(std::string_view word, std::vector<std::int64_t>& tokens) const override {
    if (pairs_.ignore_merges) {
      if (const auto found = pairs_.vocabulary.find(word); found != pairs_.vocabulary.end()) {
        tokens.push_back(found->second);
        return;
      }
    }
    const auto merged = merges_.apply(characters(word));
    tokens.insert(tokens.end(), merged.begin(), merged.end());
  }

 private:
  std::int64_t number_of(const std::string& token) const {
    const auto found = pairs_.vocabulary.find(token);
    if (found != pairs_.vocabulary.end()) return found->second;
    throw DataError(name_ + ": a merge has the token \"" + token + "\", which is not in the vocabulary");
  }

  std::int64_t unknown() const {
    const auto found = pairs_.vocabulary.find(*pairs_.unknown);
    if (found != pairs_.vocabulary.end()) return found->second;
    throw DataError(name_ + ": the unk_token \"" + *pairs_.unknown + "\" is not in the vocabulary");
  }

  // As in Hugging Face's tokenizers, the token for unknown characters is emitted only at the next known character, so
  // it comes after byte tokens in between.
  std::vector<std::int64_t> characters(std::string_view word) const {
    std::vector<std::int64_t> tokens;
    bool pending = false;
    unicode::for_each_character(word, [&](char32_t, std::size_t at, std::size_t size) {
      std::string_view text = word.substr(at, size);
      const bool last = at + size == word.size();
      std::string changed;
      if ((at > 0 && !pairs_.prefix.empty()) || (last && !pairs_.suffix.empty())) {
        changed = (at > 0 ? pairs_.prefix : "") + std::string(text) + (last ? pairs_.suffix : "");
        text = changed;
      }
      if (const auto found = pairs_.vocabulary.find(text); found != pairs_.vocabulary.end()) {
        if (pending) tokens.push_back(unknown());
        pending = false;
        tokens.push_back(found->second);
      } else if (!(pairs_.byte_fallback && bytes_.append(text, tokens)) && pairs_.unknown) {
        if (pending && !pairs_.fuse_unknown) tokens.push_back(unknown());
        pending = true;
      }
    });
    if (pending) tokens.push_back(unknown());
    return tokens;
  }

  BytePairs pairs_;
  std::string name_;
  ByteTokens bytes_;
  Merges merges_;
};

}  // namespace

std::unique_ptr<TokenModel> make_byte_pair_encoding(BytePairs pairs, const std::string& name) {
  return std::make_unique<BytePairEncoding>(std::move(pairs), name);
}

}  // namespace phalanx
