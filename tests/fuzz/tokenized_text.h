// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx::fuzz {

/// The text that is divided into tokens: words, numbers, characters of 2 and 3 bytes, and a byte that is not UTF-8.
inline constexpr std::string_view kTokenizedText = "Hello,  World! 12 caf\xc3\xa9 \xe6\x97\xa5\n\xff";

}  // namespace phalanx::fuzz
