// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/byte_alphabet.h"

#include <cstddef>

#include "datasets/text/unicode.h"

namespace phalanx {
namespace {

constexpr std::size_t kLetters = 256 + 68;  // 68 bytes are not printable characters

std::array<std::optional<char>, kLetters> bytes_of_letters() {
  std::array<std::optional<char>, kLetters> bytes;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    bytes[unicode::first_character(byte_alphabet()[byte]).code] = static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const auto alphabet = [] {
    std::array<std::string, 256> letters;
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      unicode::append(letters[byte], printable ? byte : next++);
    }
    return letters;
  }();
  return alphabet;
}

std::string in_byte_alphabet(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char byte : text) result += byte_alphabet()[static_cast<unsigned char>(byte)];
  return result;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  static const auto bytes = bytes_of_letters();
  std::string result;
  bool all = true;
  unicode::for_each_character(text, [&](char32_t code, std::size_t, std::size_t) {
    if (code < kLetters && bytes[code]) {
      result += *bytes[code];
    } else {
      all = false;
    }
  });
  if (!all) return std::nullopt;
  return result;
}

}  // namespace phalanx
