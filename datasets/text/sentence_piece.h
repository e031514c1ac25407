// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "datasets/text/tokenizer.h"

namespace phalanx {

/// A SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226), unigram or BPE, as its trainer writes it. Text
/// is normalized first as the file says, so decode() gives the normalized text; what has no piece is there as the model
/// says, by default " ⁇ ". Where tokens are decoded in several calls, each call but the first must begin with the token
/// before, whose text the caller drops: a first word has no space. The scores of the library are float32, whose digits
/// do not suffice for sums over a long text, so a text of more than 1 MiB is cut between lines, but only where its
/// tokens remain the same. Throws DataError for a file that is none, and for a model whose pieces have other texts than
/// they say (a denormalizer).
std::unique_ptr<Tokenizer> make_sentence_piece(const std::string& file);

}  // namespace phalanx
