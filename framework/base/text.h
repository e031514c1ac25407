// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// "a, b, c". Nothing for no words.
std::string join(const std::vector<std::string>& words, std::string_view separator);

/// The candidate that `word` most likely was meant to be: the one with the fewest typing mistakes (a letter more, less,
/// other or swapped with its neighbour; case, '-' and '_' do not matter), up to a third of the word; else the shortest
/// one that contains the word or is contained in it. Empty when none is near, and for words of more than 256 bytes.
/// Of equals, the first.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// printf into a string of any length. The compiler compares the arguments with the pattern.
[[gnu::format(printf, 1, 2)]] std::string format_text(const char* pattern, ...);

/// How many columns of a terminal a text takes: UTF-8, of characters that are one column wide.
std::size_t columns_of(std::string_view utf8);

/// The end of such a text, `columns` wide; the whole where it is narrower.
std::string_view last_columns(std::string_view utf8, std::size_t columns);

/// "512 B", "64 KB", "1.5 MB": at most three significant digits, steps of 1024.
std::string format_bytes(std::int64_t bytes);

/// Reads "4096", "64KB", "1.5 MB", "2GiB": steps of 1024, case does not matter. Throws ConfigError.
std::int64_t parse_bytes(std::string_view text);

}  // namespace phalanx
