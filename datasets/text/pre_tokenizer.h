// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/json.h"

namespace phalanx {

/// Cuts a text into the words that a model divides into tokens. Any number of threads may use one at the same time.
class PreTokenizer {
 public:
  /// A word, and whether it begins where the whole text does. It is valid during the call.
  using Word = std::function<void(std::string_view word, bool is_first)>;

  virtual ~PreTokenizer() = default;

  /// Calls `word` with each word of a text, which is not empty, from left to right.
  virtual void split(std::string_view text, bool is_first, const Word& word) const = 0;
};

/// Makes what a tokenizer.json names "pre_tokenizer": BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits,
/// Metaspace, Punctuation, Sequence, Split, Whitespace and WhitespaceSplit; nullptr for null. Throws ConfigError for
/// others. Errors of the patterns, while splitting too, begin with `name`.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonValue& json, const std::string& name);

}  // namespace phalanx
