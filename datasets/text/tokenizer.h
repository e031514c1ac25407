// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Turns a text into numbers of tokens and back. Any number of threads may use one at the same time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::int64_t size() const = 0;  // tokens are in [0, size())

  /// Returns the tokens of a text in UTF-8. Bytes that are not UTF-8 are preserved if the tokenizer has tokens for
  /// bytes.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;

  /// Returns the text of tokens. For all tokens of a text, this is the text that was passed to encode(), unless the
  /// tokenizer normalizes. The text of the first tokens is a prefix of the text of all tokens. Throws std::out_of_range
  /// for a number that is not a token.
  virtual std::string decode(std::span<const std::int64_t> tokens) const = 0;
};

/// Makes the tokenizer `name`: "bytes", where each byte is a token; the path of a tokenizer.json written by Hugging
/// Face's tokenizers, or of a folder that has one, or has GPT-2's vocab.json and merges.txt; or the path of a
/// SentencePiece model (sentence_piece.h), a file NAME.model or a folder that has a tokenizer.model or spiece.model.
/// Throws DataError for files that are missing or malformed, and ConfigError, which names it, for an unsupported part
/// of a tokenizer.json.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace phalanx
