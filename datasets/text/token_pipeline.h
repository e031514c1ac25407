// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/text/added_tokens.h"
#include "datasets/text/decoder.h"
#include "datasets/text/normalizer.h"
#include "datasets/text/pre_tokenizer.h"
#include "datasets/text/token_model.h"
#include "datasets/text/tokenizer.h"

namespace phalanx {

/// The steps of a tokenizer in the order in which they are applied. First, added tokens with `normalized` false are
/// searched for in the original text. The text between them is normalized, searched for the other added tokens and
/// split into words, which are divided into tokens.
struct TokenPipeline {
  std::vector<AddedToken> added{};
  std::unique_ptr<Normalizer> normalizer{};       // nullptr: none
  std::unique_ptr<PreTokenizer> pre_tokenizer{};  // nullptr: the whole text is one word
  std::unique_ptr<TokenModel> model{};
  std::unique_ptr<Decoder> decoder{};
  std::vector<std::optional<TokenText>> texts{};  // by number; nullopt if no token has the number
};

/// Throws ConfigError, which begins with `name`, for an added token whose text is empty after normalization.
std::unique_ptr<Tokenizer> make_tokenizer(TokenPipeline pipeline, const std::string& name);

}  // namespace phalanx
