// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/text/token_model.h"

namespace phalanx {

/// A byte-pair encoding as its files have it.
struct BytePairs {
  Vocabulary vocabulary{};
  std::vector<std::pair<std::string, std::string>> merges{};  // in the order in which they are applied
  std::optional<std::string> unknown{};  // token of a character that has none; without it such characters are left out
  bool fuse_unknown = false;             // unknown characters in a row are one token
  bool byte_fallback = false;            // unknown characters are spelled in bytes, where all of them have tokens
  bool ignore_merges = false;            // a word that is a token is not merged from its characters
  std::string prefix{};                  // of the token of each character but a word's first
  std::string suffix{};                  // of the token of a word's last character
};

/// Byte-pair encoding (Sennrich et al. 2015, Neural Machine Translation of Rare Words with Subword Units,
/// arXiv:1508.07909, algorithm 1): of the neighbours in a word, those whose merge comes first in the list become one,
/// until none can. Takes O(n log n) time for n characters. Throws DataError, which begins with `name`, for a merge
/// whose tokens are not in the vocabulary.
std::unique_ptr<TokenModel> make_byte_pair_encoding(BytePairs pairs, const std::string& name);

}  // namespace phalanx
