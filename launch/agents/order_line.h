// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace phalanx {

/// Returns the number after a word and a space, or nothing if the line is something else.
inline std::optional<std::int64_t> number_after(std::string_view word, std::string_view line) {
  std::int64_t number = 0;
  if (!line.starts_with(word) || !line.substr(word.size()).starts_with(' ')) return std::nullopt;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + word.size() + 1, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

/// Does the same for a number that is an int and not negative, such as that of a rank, or an exit status.
inline std::optional<int> small_number_after(std::string_view word, std::string_view line) {
  const auto number = number_after(word, line);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace phalanx
