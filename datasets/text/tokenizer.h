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

  /// The tokens of a text in UTF-8; bytes that are none are kept as they are, but by SentencePiece models.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;

  /// The text of some tokens; encode()'s whole result gives the whole text. Throws std::out_of_range for what is none.
  /// The text of the first tokens begins that of more of them.
  virtual std::string decode(std::span<const std::int64_t> tokens) const = 0;
};

/// "bytes": each byte is a token. Otherwise a byte-level BPE (Radford et al. 2019, section 2.2): a tokenizer.json as
/// Hugging Face's tokenizers write it, or a folder with that, or with GPT-2's vocab.json and merges.txt. Or a
/// SentencePiece model (sentence_piece.h): a file NAME.model, or a folder with tokenizer.model or spiece.model. Throws
/// DataError for files that are missing, malformed or of another kind.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace phalanx
