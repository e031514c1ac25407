// SPDX-License-Identifier: Apache-2.0
#include "framework/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Limits the time for counting mistakes, which grows with the product of both lengths.
constexpr std::size_t kLongestMistyped = 256;

constexpr std::array<const char*, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};

std::string normalized(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Returns the Damerau-Levenshtein distance in its restricted form (optimal string alignment). Three rows are enough,
// because a swap looks back two rows and everything else one.
std::size_t typing_mistakes(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// Returns true unless the byte continues a UTF-8 character that an earlier byte began.
bool begins_character(char byte) { return (byte & 0xC0) != 0x80; }

// Catches mistakes that no count of letters can, such as batch_size for global_batch_size. Short words are excluded,
// because they are contained in others by accident.
bool contains(const std::string& a, const std::string& b) {
  return std::min(a.size(), b.size()) >= 4 && (a.find(b) != a.npos || b.find(a) != b.npos);
}

}  // namespace

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const auto& word : words) {
    if (&word != &words.front()) text += separator;
    text += word;
  }
  return text;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestMistyped) return "";
  const std::string wanted = normalized(word);
  const std::string* best = nullptr;
  std::size_t fewest = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongestMistyped) continue;
    const std::size_t mistakes = typing_mistakes(wanted, normalized(candidate));
    // A one-letter word is one mistake away from every other one.
    if (mistakes >= fewest || mistakes >= std::max(wanted.size(), candidate.size())) continue;
    fewest = mistakes;
    best = &candidate;
  }
  if (best) return *best;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongestMistyped) continue;
    if (contains(wanted, normalized(candidate)) && (!best || candidate.size() < best->size())) best = &candidate;
  }
  return best ? *best : "";
}

std::string format_text(const char* pattern, ...) {
  std::va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  std::string text(static_cast<std::size_t>(std::max(0, length)), '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  if (length < 0) throw std::invalid_argument(std::string("cannot be printed: \"") + pattern + "\"");
  return text;
}

std::size_t columns_of(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, begins_character));
}

std::string_view last_columns(std::string_view utf8, std::size_t columns) {
  std::size_t begin = utf8.size();
  for (; columns > 0 && begin > 0; --columns) {
    do --begin;
    while (begin > 0 && !begins_character(utf8[begin]));
  }
  return utf8.substr(begin);
}

std::string format_bytes(std::int64_t bytes) {
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 would be printed as 1e+03.
  for (; std::abs(amount) >= 999.5 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return format_text("%.3g %s", amount, kUnits[unit]);
}

std::int64_t parse_bytes(std::string_view text) {
  const auto refuse = [&] {
    return ConfigError("not an amount of memory: \"" + std::string(text) + "\" (write 4096, 64KB, 1.5MB or 2GB)");
  };
  double amount = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc() || !(amount >= 0)) throw refuse();

  std::string unit = normalized(std::string_view(rest, static_cast<std::size_t>(text.data() + text.size() - rest)));
  unit.erase(0, unit.find_first_not_of(' '));
  std::erase(unit, 'i');
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (unit == normalized(kUnits[i]) || (i == 0 && unit.empty())) {
      const double bytes = std::ldexp(amount, static_cast<int>(10 * i));
      if (bytes >= std::ldexp(1.0, 63)) throw refuse();
      return std::llround(bytes);
    }
  }
  throw refuse();
}

}  // namespace phalanx
