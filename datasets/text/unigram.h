// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/text/token_model.h"

namespace phalanx {

/// A unigram language model (Kudo 2018, Subword Regularization, arXiv:1804.10959): the tokens of a word are those with
/// the largest sum of scores. Takes time linear in the word, in float64.
struct UnigramPieces {
  std::vector<std::pair<std::string, double>> pieces{};  // by number: text and score, the logarithm of a probability
  std::optional<std::int64_t>
      unknown{};               // token of characters in a row that have none; its score is 10 below the least
  bool byte_fallback = false;  // such characters are spelled in bytes, where all of them have tokens
};

/// Throws DataError, which begins with `name`, if there are no pieces or `unknown` is none of them; append(), if there
/// is no token for unknown characters.
std::unique_ptr<TokenModel> make_unigram(const UnigramPieces& pieces, const std::string& name);

}  // namespace phalanx
