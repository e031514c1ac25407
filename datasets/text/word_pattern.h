// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace phalanx {

/// A part of a text: a match of a pattern, or the text between matches.
struct Span {
  std::size_t begin, end;
  bool is_match;
};

/// A regular expression in PCRE2's syntax. Any number of threads may use one at the same time.
class WordPattern {
 public:
  /// Throws DataError, which begins with `name`, for an invalid regular expression.
  WordPattern(const std::string& pattern, const std::string& name);
  ~WordPattern();

  /// Calls `f` with consecutive parts of the text, from left to right, which together are the whole text. Empty matches
  /// are parts, too, except directly after another match. Bytes that are not UTF-8 match nothing. Throws DataError,
  /// which begins with `name`, if the search exceeds the limits of PCRE2 on backtracking or memory.
  void for_each_span(std::string_view text, const std::function<void(Span)>& f) const;

 private:
  class Cutter;
  struct Compiled;

  std::string name_;
  std::unique_ptr<Compiled> compiled_;
};

/// Returns a pattern that matches exactly this text.
std::string quoted_pattern(std::string_view text);

}  // namespace phalanx
