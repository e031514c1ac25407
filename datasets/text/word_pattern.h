// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace phalanx {

/// A part of a text: what a pattern matches, or what lies between matches.
struct Span {
  std::size_t begin, end;
  bool is_match;
};

/// A regular expression in PCRE2's syntax. Any number of threads may use one at once.
class WordPattern {
 public:
  /// Throws DataError, which begins with `name`, for what is no regular expression.
  WordPattern(const std::string& pattern, const std::string& name);
  ~WordPattern();

  /// Calls `f` with the parts of the text from left to right; together they are the text. Empty matches are parts, too,
  /// except right behind another match. Bytes that are not UTF-8 match nothing. Throws DataError, which begins with
  /// `name`, where PCRE2 gives up: a pattern may try more ways, or need more memory, than its limits allow.
  void for_each_span(std::string_view text, const std::function<void(Span)>& f) const;

 private:
  class Cutter;
  struct Compiled;

  std::string name_;
  std::unique_ptr<Compiled> compiled_;
};

/// Returns the pattern that matches a text and nothing else.
std::string quoted_pattern(std::string_view text);

}  // namespace phalanx
