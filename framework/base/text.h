// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Returns the words with `separator` between them: "a, b, c". Returns an empty string for no words.
std::string join(const std::vector<std::string>& words, std::string_view separator);

/// Returns the candidate that `word` was most likely meant to be. This is the one with the fewest typing mistakes (a
/// letter more, less, other or swapped with its neighbour; case, '-' and '_' do not matter), up to a third of the word.
/// If no candidate has so few, it is the shortest one that contains the word or is contained in it. Returns the first
/// of several equally good candidates, and an empty string if none is near or the word has more than 256 bytes.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Formats like printf, into a string of any length. The compiler checks the arguments against the pattern.
[[gnu::format(printf, 1, 2)]] std::string format_text(const char* pattern, ...);

/// Returns the number of terminal columns that a UTF-8 text takes, if each of its characters is one column wide.
std::size_t columns_of(std::string_view utf8);

/// Returns the end of such a text, `columns` wide, or the whole text if it is narrower.
std::string_view last_columns(std::string_view utf8, std::size_t columns);

/// Formats a number of bytes as "512 B", "64 KB" or "1.5 MB": at most three significant digits, in steps of 1024.
std::string format_bytes(std::int64_t bytes);

/// Parses "4096", "64KB", "1.5 MB" or "2GiB": steps of 1024, case does not matter. Throws ConfigError.
std::int64_t parse_bytes(std::string_view text);

}  // namespace phalanx
