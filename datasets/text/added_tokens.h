// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/text/special_tokens.h"

namespace phalanx {

/// A text that is a token wherever it stands, such as <|endoftext|>.
struct AddedToken {
  std::string text{};
  std::int64_t token = 0;
  bool lstrip = false, rstrip = false;  // white space before it, or behind it, is part of it
  bool single_word = false;             // it is none next to a letter, a mark, a digit or a connector
  bool normalized = false;              // it is searched for in normalized text
};

/// Finds added tokens as Hugging Face's tokenizers do. Takes time linear in the text.
class AddedTokens {
 public:
  /// None of the texts may be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Calls `token` with each token of a text, and `rest` with what lies between and where that begins, from left to
  /// right.
  void find(std::string_view text, const std::function<void(std::int64_t)>& token,
            const std::function<void(std::string_view, std::size_t)>& rest) const;

 private:
  std::vector<AddedToken> tokens_;
  SpecialTokens texts_;
};

}  // namespace phalanx
