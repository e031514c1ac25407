// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Numbers the pieces of a text, and puts them together again. Any number of threads may use one at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::int64_t size() const = 0;  // tokens lie in [0, size())

  /// The tokens of a text in UTF-8. Other bytes are kept as they are, where the tokenizer has tokens for bytes.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;

  /// Returns the text of tokens: the text that encode() was given, for all of its tokens, if the tokenizer does not
  /// normalize. The text of the first tokens is the beginning of the text of all. Throws std::out_of_range for a number
  /// that is not a token's.
  virtual std::string decode(std::span<const std::int64_t> tokens) const = 0;
};

/// "bytes": each byte is a token. Otherwise a tokenizer.json as Hugging Face's tokenizers write it, or a folder with
/// that, or with GPT-2's vocab.json and merges.txt. Or a SentencePiece model (sentence_piece.h): a file NAME.model, or
/// a folder with tokenizer.model or spiece.model. Throws DataError for files that are missing or malformed, and
/// ConfigError for a tokenizer.json with something that is not supported, which its message names.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace phalanx
