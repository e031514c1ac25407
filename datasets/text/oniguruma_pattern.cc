// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/oniguruma_pattern.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "datasets/text/unsupported.h"
#include "datasets/text/word_pattern.h"

namespace phalanx {
namespace {

// The contents of character classes, which can be part of other classes.
constexpr std::string_view kWordInSet = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";  // outside of sets
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

constexpr std::array<std::string_view, 35> kCategories{
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "C"};
constexpr std::array<std::string_view, 24> kScripts{
    "Han",    "Hiragana", "Katakana", "Hangul",   "Latin",     "Greek",      "Cyrillic", "Arabic",
    "Hebrew", "Thai",     "Armenian", "Georgian", "Bengali",   "Devanagari", "Tamil",    "Telugu",
    "Lao",    "Khmer",    "Myanmar",  "Tibetan",  "Mongolian", "Ethiopic",   "Gujarati", "Bopomofo"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translation {
 public:
  explicit Translation(const JsonValue& value) : value_(value), text_(value.as<std::string>()) {}

  std::string run() {
    std::string result;
    while (at_ < text_.size()) result += next();
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_unsupported(value_, "the regular expression's " + what);
  }

  bool starts_with(std::string_view start) const { return std::string_view(text_).substr(at_).starts_with(start); }

  bool take(std::string_view start) {
    if (!starts_with(start)) return false;
    at_ += start.size();
    return true;
  }

  std::string next() {
    switch (text_[at_]) {
      case '\\':
        return escape();
      case '[':
        return '[' + set(0) + ']';
      case '(':
        return group();
      case '{':
        return repetition();
      case '^':  // matches at the beginning of each line
        return ++at_, "(?m:^)";
      case '$':
        return ++at_, "(?m:$)";
      case '.':
        return ++at_, "[^\\n]";
      case ']':
      case '}':
        return std::string("\\") + text_[at_++];
      default:
        return {text_[at_++]};
    }
  }

  std::string group() {
    for (const char* known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (take(known)) return known;
    }
    // In other places it would apply to the following alternatives as well.
    if (at_ == 0 && take("(?i)")) return "(?i)";
    if (starts_with("(?") || starts_with("(*")) refuse(text_.substr(at_, 3));
    return ++at_, "(";
  }

  // Translates an interval such as {2,5}. Only greedy intervals mean the same in both syntaxes.
  std::string repetition() {
    const auto begin = at_++;
    std::string first, last;
    while (at_ < text_.size() && is_digit(text_[at_])) first += text_[at_++];
    const bool comma = take(",");
    while (comma && at_ < text_.size() && is_digit(text_[at_])) last += text_[at_++];
    const bool closed = take("}");
    if (!closed || (first.empty() && last.empty()) || starts_with("+") || starts_with("?") || starts_with("*")) {
      refuse(text_.substr(begin, at_ - begin + 1));
    }
    return '{' + (first.empty() ? "0" : first) + (comma ? "," : "") + last + '}';
  }

  std::string escape() {
    if (take("\\b")) return boundary("(?:(?<=[W])(?![W])|(?<![W])(?=[W]))");
    if (take("\\B")) return boundary("(?:(?<=[W])(?=[W])|(?<![W])(?![W]))");
    if (take("\\A")) return "\\A";
    if (take("\\z")) return "\\z";
    if (take("\\Z")) return "\\Z";
    if (take("\\W")) return "[^" + std::string(kWord) + ']';
    if (take("\\H")) return "[^" + std::string(kHexDigits) + ']';
    if (take("\\w")) return '[' + std::string(kWord) + ']';
    if (starts_with("\\h")) return '[' + member() + ']';
    return member();
  }

  static std::string boundary(std::string pattern) {
    for (std::size_t at = 0; (at = pattern.find("[W]", at)) != std::string::npos; at += kWord.size()) {
      pattern.replace(at + 1, 1, kWord);
    }
    return pattern;
  }

  // Translates an escape that may also occur in a set.
  std::string member() {
    const auto begin = at_++;
    if (at_ == text_.size()) refuse("\\ at its end");
    const char letter = text_[at_++];
    switch (letter) {
      case 's':
        return "\\p{White_Space}";
      case 'S':
        return "\\P{White_Space}";
      case 'd':
        return "\\p{Nd}";
      case 'D':
        return "\\P{Nd}";
      case 'w':
        return std::string(kWordInSet);
      case 'h':
        return std::string(kHexDigits);
      case 'v':
        return "\\x0b";
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return {'\\', letter};
      case 'p':
      case 'P':
        return property(letter == 'P');
      case 'x':
        return take("{") ? code_point(text_.find('}', at_), 1) : code_point(at_ + 2, 0);
      case 'u':
        return code_point(at_ + 4, 0);
      default:
        if (is_letter(letter) || is_digit(letter)) refuse(text_.substr(begin, 2));
        return {'\\', letter};
    }
  }

  // Translates hexadecimal digits up to `end`.
  std::string code_point(std::size_t end, std::size_t closing) {
    const auto digits = end < text_.size() + 1 ? text_.substr(at_, end - at_) : "";
    const bool valid = !digits.empty() && digits.size() <= 6 && std::ranges::all_of(digits, is_hex_digit);
    // In Oniguruma, \x80 and up are bytes.
    if (!valid || (digits.size() == 2 && closing == 0 && digits[0] >= '8')) refuse("\\x" + digits);
    at_ = end + closing;
    return "\\x{" + digits + '}';
  }

  std::string property(bool negated) {
    const auto end = text_.find('}', at_);
    if (!take("{") || end == std::string::npos) refuse("\\p without {}");
    if (take("^")) negated = !negated;
    const auto name = text_.substr(at_, end - at_);
    at_ = end + 1;
    const std::string start = negated ? "\\P{" : "\\p{";
    if (std::ranges::find(kCategories, name) != kCategories.end()) return start + name + '}';
    if (std::ranges::find(kScripts, name) != kScripts.end()) return start + "sc:" + name + '}';
    refuse("\\p{" + name + '}');
  }

  // Translates the content of brackets. A set inside a set adds to it.
  std::string set(int depth) {
    ++at_;
    std::string result;
    if (take("^")) {
      if (depth > 0) refuse("[^ in a set");
      result = "^";
    }
    if (starts_with("]")) refuse("[]");
    while (at_ < text_.size() && text_[at_] != ']') {
      if (starts_with("&&")) refuse("&&");
      if (starts_with("[:")) refuse("[: in a set");
      if (text_[at_] == '[') {
        result += set(depth + 1);
      } else if (text_[at_] == '\\') {
        result += member();
      } else if (text_[at_] == '-') {
        result += hyphen(result);
      } else {
        result += text_[at_++];
      }
    }
    if (!take("]")) refuse("[ without ]");
    return result;
  }

  // Translates a hyphen. Between characters it makes a range; at the ends of a set it is a literal hyphen.
  std::string hyphen(const std::string& before) {
    ++at_;
    if (before.empty() || before == "^" || starts_with("]")) return "\\-";
    if (before.ends_with('}') || starts_with("[") || starts_with("\\p") || starts_with("\\s")) {
      const bool code = before.rfind("\\x{") != std::string::npos && before.rfind("\\x{") > before.rfind('\\') - 1;
      if (!code) refuse("range next to a class");
    }
    return "-";
  }

  const JsonValue& value_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string from_oniguruma(const JsonValue& pattern) { return Translation(pattern).run(); }

std::string pattern_of(const JsonValue& json) {
  return json.has("Regex") ? from_oniguruma(json.at("Regex")) : quoted_pattern(json.get<std::string>("String"));
}

}  // namespace phalanx
