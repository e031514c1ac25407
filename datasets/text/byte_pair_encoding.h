// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/text/token_model.h"

namespace phalanx {

/// A byte-pair encoding as stored in its files.
struct BytePairs {
  Vocabulary vocabulary{};
  std::vector<std::pair<std::string, std::string>> merges{};  // in the order in which they are applied
  // Token of characters that are not in the vocabulary. If absent, such characters are dropped.
  std::optional<std::string> unknown{};
  bool fuse_unknown = false;   // consecutive unknown characters become one token
  bool byte_fallback = false;  // an unknown character becomes byte tokens, if all of its bytes have one
  bool ignore_merges = false;  // a word that is a token is not merged from its characters
  std::string prefix{};        // of the tokens of all characters except the first one of a word
  std::string suffix{};        // of the token of the last character of a word
};

/// Returns a byte-pair encoding (Sennrich et al. 2015, Neural Machine Translation of Rare Words with Subword Units,
/// arXiv:1508.07909, algorithm 1). In a word, it repeatedly merges the neighbours whose merge comes first in the list,
/// until no merge applies. Takes O(n log n) time for n characters. Throws DataError, which begins with `name`, for a
/// merge whose tokens are not in the vocabulary.
std::unique_ptr<TokenModel> make_byte_pair_encoding(BytePairs pairs, const std::string& name);

}  // namespace phalanx
