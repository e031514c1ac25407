// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx::unicode {

/// A byte b that is not part of a UTF-8 character counts as the character kFirstByte + b.
inline constexpr char32_t kFirstByte = 0x110000;

struct Character {
  char32_t code;
  std::size_t size;  // in bytes
};

/// Returns the number of bytes of the UTF-8 character (RFC 3629) at the beginning of a text, or 0 if the text does not
/// begin with one.
std::size_t size_of_character(std::string_view text);

/// Returns the first character of a text, which must not be empty.
Character first_character(std::string_view text);

/// Returns the last character of a text, which must not be empty.
Character last_character(std::string_view text);

/// Appends a character in UTF-8, or the byte that it represents.
void append(std::string& text, char32_t code);

/// Calls f(code, position, size) for each character, from left to right.
template <class F>
void for_each_character(std::string_view text, const F& f) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = first_character(text.substr(at, 4));
    f(code, at, size);
    at += size;
  }
}

/// Returns true if all bytes are below 128.
bool is_ascii(std::string_view text);

// Classes of characters as Hugging Face's tokenizers define them.
bool is_white_space(char32_t code);
bool is_numeric(char32_t code);
bool is_punctuation(char32_t code);
bool is_word(char32_t code);
bool is_mark(char32_t code);
bool is_nonspacing_mark(char32_t code);
bool is_control(char32_t code);
bool is_chinese(char32_t code);

/// Appends the lower-case form of a character: one or two characters.
void append_lower_case(std::string& text, char32_t code);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Returns the text in a normal form of Unicode Standard Annex 15. Characters newer than Unicode 12 are not changed, as
/// in Hugging Face's tokenizers, nor are bytes that are not UTF-8.
std::string normalized(std::string_view text, NormalForm form);

}  // namespace phalanx::unicode
