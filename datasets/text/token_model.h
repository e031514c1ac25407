// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phalanx {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// Values by text, which are found by std::string_view, too.
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// Numbers of tokens by their text.
using Vocabulary = ByText<std::int64_t>;

/// Divides a word into tokens. Any number of threads may use one at the same time.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a word, which is not empty. Throws DataError for a word that the model has no tokens for.
  virtual void append(std::string_view word, std::vector<std::int64_t>& tokens) const = 0;
};

/// The tokens <0x00> to <0xFF> of a vocabulary, with which models spell what they do not know.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary);

  /// Appends the tokens of the bytes of a text. Returns false, and appends nothing, if one of them has no token.
  bool append(std::string_view text, std::vector<std::int64_t>& tokens) const;

  /// Returns the name of a byte's token: "<0x0A>".
  static std::string name(unsigned char byte);

 private:
  std::vector<std::int64_t> tokens_;  // by byte; -1: none
};

/// WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018, arXiv:1810.04805): the longest token that a word begins
/// with, then the longest of the rest, whose tokens begin with `prefix`. A word that cannot be divided so, or has more
/// than `most` characters, is one token `unknown`. append() throws DataError, which begins with `name`, if that is not
/// in the vocabulary.
std::unique_ptr<TokenModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& prefix, std::int64_t most, const std::string& name);

/// Words that are a token each; the others are `unknown`, whose absence from the vocabulary is an error as above.
std::unique_ptr<TokenModel> make_word_level(Vocabulary vocabulary, const std::string& unknown, const std::string& name);

/// A unigram language model (Kudo 2018, Subword Regularization, arXiv:1804.10959): the tokens of a word are those with
/// the largest sum of scores. Takes time linear in the word, in float64.
struct UnigramPieces {
  std::vector<std::pair<std::string, double>> pieces{};  // by number: text and score, the logarithm of a probability
  std::optional<std::int64_t>
      unknown{};               // token of characters in a row that have none; its score is 10 below the least
  bool byte_fallback = false;  // such characters are spelled in bytes, where all of them have tokens
};

/// Throws DataError, which begins with `name`, if there are no pieces or `unknown` is none of them; append(), if there
/// is no token for unknown characters.
std::unique_ptr<TokenModel> make_unigram(const UnigramPieces& pieces, const std::string& name);

}  // namespace phalanx
