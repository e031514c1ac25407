// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// Returns GPT-2's alphabet, which has a printable character for each byte. Printable characters of Latin-1 represent
/// themselves; characters from U+0100 on represent the other bytes.
const std::array<std::string, 256>& byte_alphabet();

/// Returns the bytes of a text, each replaced by its character.
std::string in_byte_alphabet(std::string_view text);

/// Returns the bytes that a text of this alphabet represents, or std::nullopt if a character is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace phalanx
