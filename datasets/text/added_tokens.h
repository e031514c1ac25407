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

/// A text that is a token wherever it occurs, such as <|endoftext|>.
struct AddedToken {
  std::string text{};
  std::int64_t token = 0;
  bool lstrip = false, rstrip = false;  // white space before, or after, the token belongs to it
  bool single_word = false;             // does not match next to a letter, a mark, a digit or a connector
  bool normalized = false;              // is searched for in normalized text
};

/// Finds added tokens as Hugging Face's tokenizers do. Takes time linear in the text.
class AddedTokens {
 public:
  /// No text may be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Calls, from left to right, `token` with each token of a text and `rest` with each part between tokens and the
  /// position at which it begins.
  void find(std::string_view text, const std::function<void(std::int64_t)>& token,
            const std::function<void(std::string_view, std::size_t)>& rest) const;

 private:
  std::vector<AddedToken> tokens_;
  SpecialTokens texts_;
};

}  // namespace phalanx
