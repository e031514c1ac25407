// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/token_model.h"

#include <algorithm>

namespace phalanx {

std::string ByteTokens::name(unsigned char byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

ByteTokens::ByteTokens(const Vocabulary& vocabulary) : tokens_(256, -1) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = vocabulary.find(name(static_cast<unsigned char>(byte)));
    if (found != vocabulary.end()) tokens_[byte] = found->second;
  }
}

bool ByteTokens::append(std::string_view text, std::vector<std::int64_t>& tokens) const {
  const auto token_of = [&](char byte) { return tokens_[static_cast<unsigned char>(byte)]; };
  if (std::ranges::any_of(text, [&](char byte) { return token_of(byte) < 0; })) return false;
  for (const char byte : text) tokens.push_back(token_of(byte));
  return true;
}

}  // namespace phalanx
