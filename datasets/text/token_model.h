// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
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

}  // namespace phalanx
