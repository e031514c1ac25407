// SPDX-License-Identifier: Apache-2.0
// Replaces sentence_piece.cc if Phalanx is built without SentencePiece.
#include "datasets/text/sentence_piece.h"
#include "framework/base/error.h"

namespace phalanx {

std::unique_ptr<Tokenizer> make_sentence_piece(const std::string& file) {
  throw ConfigError(
      file +
      ": this program cannot read SentencePiece models, since SentencePiece was not installed when it was "
      "built: install libsentencepiece-dev and build again");
}

}  // namespace phalanx
