// SPDX-License-Identifier: Apache-2.0
// Models of SentencePiece, which is an optional library.
#include <string_view>

#include "datasets/text/sentence_piece.h"
#include "tests/fuzz/scratch_file.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tokenized_text.h"

namespace phalanx::fuzz {
namespace {

void read_sentence_piece(std::string_view input) {
  const ScratchFile file(input);
  const auto tokenizer = make_sentence_piece(file.path());
  tokenizer->decode(tokenizer->encode(kTokenizedText));
}

const bool kSentencePieceAdded = add_target({"sentence_piece", read_sentence_piece});

}  // namespace
}  // namespace phalanx::fuzz
