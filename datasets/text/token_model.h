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

/// A map from text that can be searched with std::string_view.
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// Token numbers by text.
using Vocabulary = ByText<std::int64_t>;

/// Divides a word into tokens. Any number of threads may use one at the same time.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a non-empty word. Throws DataError for a word for which the model has no tokens.
  virtual void append(std::string_view word, std::vector<std::int64_t>& tokens) const = 0;
};

/// The tokens <0x00> to <0xFF> of a vocabulary, with which models represent unknown characters.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary);

  /// Appends the tokens of the bytes of a text. If a byte has no token, appends nothing and returns false.
  bool append(std::string_view text, std::vector<std::int64_t>& tokens) const;

  /// Returns the name of the token of a byte: "<0x0A>".
  static std::string name(unsigned char byte);

 private:
  std::vector<std::int64_t> tokens_;  // by byte; -1 if the byte has no token
};

/// Returns a WordPiece model (Schuster and Nakajima 2012; Devlin et al. 2018, arXiv:1810.04805). It takes the longest
/// token that a word begins with, then repeatedly the longest token of the rest, where tokens begin with `prefix`. A
/// word that cannot be divided this way, or has more than `most` characters, becomes the token `unknown`. append()
/// throws DataError, which begins with `name`, if `unknown` is needed but not in the vocabulary.
std::unique_ptr<TokenModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& prefix, std::int64_t most, const std::string& name);

/// Returns a model in which each word is one token. Other words become `unknown`; append() throws as above if it is not
/// in the vocabulary.
std::unique_ptr<TokenModel> make_word_level(Vocabulary vocabulary, const std::string& unknown, const std::string& name);

/// A unigram language model (Kudo 2018, Subword Regularization, arXiv:1804.10959). It divides a word into the tokens
/// with the largest sum of scores. Takes time linear in the word and computes in float64.
struct UnigramPieces {
  std::vector<std::pair<std::string, double>> pieces{};  // by number: text and score, the log of a probability
  // Token for consecutive characters without a token. Its score is the lowest score minus 10.
  std::optional<std::int64_t> unknown{};
  bool byte_fallback = false;  // such characters become byte tokens, if all of their bytes have one
};

/// Throws DataError, which begins with `name`, if there are no pieces or `unknown` is not one of them. append() throws
/// it if a word has unknown characters and there is no token for them.
std::unique_ptr<TokenModel> make_unigram(const UnigramPieces& pieces, const std::string& name);

}  // namespace phalanx
