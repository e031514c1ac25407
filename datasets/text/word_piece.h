// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "datasets/text/token_model.h"

namespace phalanx {

/// WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018, arXiv:1810.04805): the longest token that a word begins
/// with, then the longest of the rest, whose tokens begin with `prefix`. A word that cannot be divided so, or has more
/// than `most` characters, is one token `unknown`. append() throws DataError, which begins with `name`, if that is not
/// in the vocabulary.
std::unique_ptr<TokenModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& prefix, std::int64_t most, const std::string& name);

/// Words that are a token each; the others are `unknown`, whose absence from the vocabulary is an error as above.
std::unique_ptr<TokenModel> make_word_level(Vocabulary vocabulary, const std::string& unknown, const std::string& name);

}  // namespace phalanx
