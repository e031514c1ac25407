// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/precompiled_charsmap.h"

#include <utf8proc.h>

#include "datasets/text/unicode.h"

namespace phalanx {
namespace {

std::string from_base64(const JsonValue& value) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  std::string_view text;
  const auto whole = value.as<std::string>();
  text = whole;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char letter : text) {
    const auto digit = kDigits.find(letter);
    if (digit == std::string_view::npos) value.refuse("is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return word;
}

// A unit of the trie. Bits 0 to 7 are a label. Bit 8 is set if a value follows. Bits 10 and up are the offset of the
// children, which is multiplied by 256 if bit 9 is set.
std::size_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

}  // namespace

PrecompiledCharsmap::PrecompiledCharsmap(const JsonValue& base64) {
  if (base64.is_null()) return;
  const auto bytes = from_base64(base64);
  if (bytes.empty()) return;
  const std::size_t size = bytes.size() < 4 ? 0 : word_at(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) base64.refuse("has a trie of a wrong size");
  for (std::size_t at = 4; at < 4 + size; at += 4) trie_.push_back(word_at(bytes, at));
  texts_ = bytes.substr(4 + size);
}

std::optional<std::string_view> PrecompiledCharsmap::replacement(std::string_view part) const {
  if (trie_.empty()) return std::nullopt;
  std::size_t node = offset_of(trie_[0]);
  for (const char letter : part) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte == 0) break;
    node ^= byte;
    if (node >= trie_.size()) break;
    const auto unit = trie_[node];
    if ((unit & (1U << 31 | 0xffU)) != byte) break;
    node ^= offset_of(unit);
    if ((unit >> 8 & 1U) == 0) continue;
    if (node >= trie_.size()) break;
    const std::size_t begin = trie_[node] & 0x7fffffffU;
    if (begin > texts_.size()) break;
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void PrecompiledCharsmap::append_cluster(std::string_view cluster, std::string& result) const {
  if (cluster.size() < 6) {
    if (const auto found = replacement(cluster)) {
      result += *found;
      return;
    }
  }
  unicode::for_each_character(cluster, [&](char32_t, std::size_t at, std::size_t size) {
    const auto part = cluster.substr(at, size);
    result += replacement(part).value_or(part);
  });
}

std::string PrecompiledCharsmap::normalized(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  char32_t last = unicode::kFirstByte;
  utf8proc_int32_t state = 0;
  unicode::for_each_character(text, [&](char32_t code, std::size_t at, std::size_t) {
    const bool bytes = last >= unicode::kFirstByte || code >= unicode::kFirstByte;
    const bool ends = bytes || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last),
                                                                static_cast<utf8proc_int32_t>(code), &state);
    if (bytes) state = 0;
    if (ends && at > begin) {
      append_cluster(text.substr(begin, at - begin), result);
      begin = at;
    }
    last = code;
  });
  append_cluster(text.substr(begin), result);
  return result;
}

}  // namespace phalanx
