#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/text/tokenizer.h"

namespace phalanx {

/// A byte-level BPE as its files have it. Tokens are spelled in GPT-2's alphabet, which has a printable character for
/// each byte.
struct BytePairs {
  std::map<std::string, std::int64_t> vocabulary{};           // token -> number
  std::vector<std::pair<std::string, std::string>> merges{};  // in the order in which they are applied
  std::map<std::string, std::int64_t> special{};              // texts that are a token each, such as <|endoftext|>
  std::map<std::string, std::int64_t> added{};  // the same, but found in what lies between `special` alone
  std::string pattern{};  // regular expression (PCRE2) of the words that a text is cut into; empty: GPT-2's
};

/// Throws DataError, which begins with `name`, where a merge makes no token, an added token has no text, or a number is
/// far beyond the number of tokens. encode() throws DataError where a byte has no token or the pattern gives up.
std::unique_ptr<Tokenizer> make_byte_pair_encoding(const BytePairs& pairs, const std::string& name);

}  // namespace phalanx
