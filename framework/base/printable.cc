// SPDX-License-Identifier: Apache-2.0
#include "framework/base/printable.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "framework/base/text.h"

namespace phalanx {
namespace {

struct Character {
  std::size_t bytes = 1;
  std::int64_t code = -1;  // -1: not UTF-8
};

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns the first character of `text`, which is not empty.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr std::int64_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000}, kLargest = 0x10FFFF;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return {};
  std::int64_t code = lead & (0xFF >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return {};
    code = code << 6 | (text[i] & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[bytes] || code > kLargest || surrogate ? Character{} : Character{bytes, code};
}

bool harmful(std::int64_t code) {
  const bool control = code < ' ' || (code >= 0x7F && code < 0xA0);
  const bool directs = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                       (code >= 0x2066 && code <= 0x2069);
  return (control && code != '\n' && code != '\t') || directs;
}

std::string spelled(std::int64_t code) {
  return format_text(code < 0x80 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
}

// Returns the length of the escape sequence at the beginning of `text` if it sets a style, erases or moves up, else 0.
std::size_t style_at(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const auto end = text.find_first_not_of("0123456789;", 2);
  const bool passes = end != text.npos && std::string_view("mKJA").find(text[end]) != text.npos;
  return passes ? end + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code] = first_of(text);
    if (code < 0) {
      shown += format_text("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (harmful(code)) {
      shown += spelled(code);
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

void print_text(const char* pattern, ...) {
  char* text = nullptr;
  std::va_list arguments;
  va_start(arguments, pattern);
  const int length = ::vasprintf(&text, pattern, arguments);
  va_end(arguments);
  if (length < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(void*)> owned(text, &std::free);
  std::fputs(printable({text, static_cast<std::size_t>(length)}).c_str(), stdout);
}

std::string printable_with_style(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    auto [bytes, code] = first_of(text);
    const std::size_t style = style_at(text);
    if (style > 0) bytes = style;
    const bool passes = style > 0 || code < 0 || code == '\r' || !harmful(code);
    shown += passes ? std::string(text.substr(0, bytes)) : spelled(code);
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace phalanx
