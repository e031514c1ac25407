// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <span>

#include "datasets/text/unicode_tables.h"
#include "framework/base/error.h"

namespace phalanx::unicode {
namespace {

// Characters with a combining class, a decomposition or a composition that was added after the Unicode version of the
// library's tables for normal forms.
constexpr std::array<Range, 52> kNewer{
    {{0x7fd, 0x7fd},     {0x897, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1aeb},   {0x1df6, 0x1dfa},
     {0x32ff, 0x32ff},   {0xa7f1, 0xa7f4},   {0xa82c, 0xa82c},   {0xab69, 0xab69},   {0x105c0, 0x105f3},
     {0x10781, 0x107ba}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d}, {0x10eab, 0x10eac}, {0x10efa, 0x10eff},
     {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x11380, 0x113e2},
     {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943},
     {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
     {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16100, 0x1612f}, {0x16d63, 0x16d6a},
     {0x16ff0, 0x16ff1}, {0x1ccd6, 0x1ccf9}, {0x1e030, 0x1e06d}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136},
     {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6f5},
     {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}}};

// Pairs of upper and lower case that are newer than utf8proc 2.8.
struct Case {
  char32_t first, last, lower;
};
constexpr std::array<Case, 10> kNewerCases{{{0x1c89, 0x1c89, 0x1c8a},
                                            {0xa7cb, 0xa7cb, 0x264},
                                            {0xa7cc, 0xa7cc, 0xa7cd},
                                            {0xa7ce, 0xa7ce, 0xa7cf},
                                            {0xa7d2, 0xa7d2, 0xa7d3},
                                            {0xa7d4, 0xa7d4, 0xa7d5},
                                            {0xa7da, 0xa7da, 0xa7db},
                                            {0xa7dc, 0xa7dc, 0x19b},
                                            {0x10d50, 0x10d65, 0x10d70},
                                            {0x16ea0, 0x16eb8, 0x16ebb}}};

bool is_in(std::span<const Range> ranges, char32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &Range::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace

std::size_t size_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  // Rejects overlong forms, surrogates, and code points beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) return 0;
  return size;
}

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const auto size = size_of_character(text);
  if (size == 0) return {kFirstByte + byte(0), 1};
  if (size == 1) return {byte(0), 1};
  char32_t code = byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3fU);
  return {code, size};
}

Character last_character(std::string_view text) {
  for (std::size_t size = std::min<std::size_t>(4, text.size()); size > 1; --size) {
    const auto end = text.substr(text.size() - size);
    if (size_of_character(end) == size) return first_character(end);
  }
  return first_character(text.substr(text.size() - 1));
}

void append(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code >= kFirstByte) {
    put(code - kFirstByte);
  } else if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_numeric(char32_t code) { return is_in(kNumeric, code); }
bool is_punctuation(char32_t code) { return is_in(kPunctuation, code); }
bool is_word(char32_t code) { return is_in(kWord, code); }
bool is_mark(char32_t code) { return is_in(kMarks, code); }
bool is_nonspacing_mark(char32_t code) { return is_in(kNonspacingMarks, code); }
bool is_control(char32_t code) { return is_in(kControl, code); }

bool is_chinese(char32_t code) {
  static constexpr std::array<Range, 7> kChinese{{{0x3400, 0x4dbf},
                                                  {0x4e00, 0x9fff},
                                                  {0xf900, 0xfaff},
                                                  {0x20000, 0x2a6df},
                                                  {0x2a700, 0x2b81f},
                                                  {0x2b920, 0x2ceaf},
                                                  {0x2f800, 0x2fa1f}}};
  return is_in(kChinese, code);
}

void append_lower_case(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code);
  } else if (code == 0x130) {
    text += "i\xcc\x87";  // SpecialCasing.txt
  } else if (code >= kFirstByte) {
    append(text, code);
  } else {
    const auto newer = std::ranges::find_if(
        kNewerCases, [&](const Case& letters) { return code >= letters.first && code <= letters.last; });
    if (newer != kNewerCases.end()) return append(text, newer->lower + (code - newer->first));
    append(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const int options =
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0);
  std::string result;
  const auto put = [&](std::string_view part) {
    if (part.empty()) return;
    utf8proc_uint8_t* mapped = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(part.data()), std::ssize(part), &mapped,
                                   static_cast<utf8proc_option_t>(options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> freed(mapped, &std::free);
    if (size < 0) throw DataError(std::string("a text cannot be normalized: ") + utf8proc_errmsg(size));
    result.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
  };
  // utf8proc needs 4 bytes and more for each character. The text can be divided at line feeds, which neither compose
  // nor are reordered.
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  std::size_t begin = 0;
  for_each_character(text, [&](char32_t code, std::size_t at, std::size_t size) {
    if (code == '\n' && at - begin >= kLongest) {
      put(text.substr(begin, at - begin));
      begin = at;
    } else if (code >= kFirstByte || (code >= 0x7fd && is_in(kNewer, code))) {
      put(text.substr(begin, at - begin));
      result += text.substr(at, size);
      begin = at + size;
    }
  });
  put(text.substr(begin));
  return result;
}

}  // namespace phalanx::unicode
