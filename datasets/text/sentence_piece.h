// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "datasets/text/tokenizer.h"

namespace phalanx {

/// Reads a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226), unigram or BPE, as written by its trainer.
/// Text is first normalized by the rules in the file, so decode() returns the normalized text. Characters without a
/// piece become the model's text for unknown tokens, " ⁇ " by default.
///
/// If tokens are decoded in several calls, each call except the first must begin with the previous token, whose text
/// the caller drops, since decoding drops the space before a first word.
///
/// The library computes scores in float32, which is not precise enough for sums over a long text. So a text of more
/// than 1 MiB is cut between lines, but only if its tokens stay the same. Throws DataError for a file that is not a
/// model, and for a model that changes texts after decoding (a denormalizer).
std::unique_ptr<Tokenizer> make_sentence_piece(const std::string& file);

}  // namespace phalanx
