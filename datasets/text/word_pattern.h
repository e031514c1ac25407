#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace phalanx {

/// A regular expression (PCRE2) that cuts texts into words. Any number of threads may use one at once.
class WordPattern {
 public:
  /// Throws DataError, which begins with `name`, for what is no regular expression.
  WordPattern(const std::string& pattern, const std::string& name);
  ~WordPattern();

  /// Calls `word` with each part of the text from left to right; together they are the text. What the pattern leaves
  /// out, such as bytes that are no UTF-8, is a word too. Throws DataError, which begins with `name`, where PCRE2 gives
  /// up: a pattern may try more ways, or need more memory, than its limits allow.
  void cut(std::string_view text, const std::function<void(std::string_view)>& word) const;

 private:
  class Cutter;
  struct Compiled;

  std::string name_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace phalanx
