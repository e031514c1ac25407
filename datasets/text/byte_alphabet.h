// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// GPT-2's alphabet, which has a printable character for each byte: printable characters of Latin-1 stand for
/// themselves, the other bytes for those from U+0100 on.
const std::array<std::string, 256>& byte_alphabet();

/// Returns the bytes of a text, each as its character.
std::string in_byte_alphabet(std::string_view text);

/// Returns the bytes that a text of this alphabet spells; std::nullopt if a character is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace phalanx
