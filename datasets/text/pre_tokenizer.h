// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/json.h"

namespace phalanx {

/// Splits a text into the words that a model divides into tokens. Any number of threads may use one at the same time.
class PreTokenizer {
 public:
  /// Receives a word, which is valid only during the call. `is_first` is true if it begins where the whole text begins.
  using Word = std::function<void(std::string_view word, bool is_first)>;

  virtual ~PreTokenizer() = default;

  /// Calls `word` with each word of a non-empty text, from left to right.
  virtual void split(std::string_view text, bool is_first, const Word& word) const = 0;
};

/// Makes the pre-tokenizer that `json`, the value of "pre_tokenizer" in a tokenizer.json, describes: BertPreTokenizer,
/// ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, Whitespace or WhitespaceSplit.
/// Returns nullptr for null. Throws ConfigError for other pre-tokenizers. Errors of patterns, also while splitting,
/// begin with `name`.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonValue& json, const std::string& name);

}  // namespace phalanx
