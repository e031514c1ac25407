// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8

#include "datasets/text/word_pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "datasets/text/unicode.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

// Returns the length of the longest prefix of a text that consists of UTF-8 characters or, if `valid` is false, of
// other bytes.
std::size_t length_of_part(std::string_view text, bool valid) {
  std::size_t end = 0;
  while (end < text.size()) {
    const auto length = unicode::size_of_character(text.substr(end, 4));
    if ((length > 0) != valid) break;
    end += std::max<std::size_t>(length, 1);
  }
  return end;
}

}  // namespace

struct WordPattern::Compiled {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code;
};

// Splits one text. Determines once which parts are UTF-8, because PCRE2 would check the rest of the text for each word.
class WordPattern::Cutter {
 public:
  Cutter(const WordPattern& pattern, const std::function<void(Span)>& f)
      : pattern_(pattern), code_(pattern.compiled_->code.get()), f_(f) {}

  void cut(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto valid = length_of_part(text.substr(begin), /*valid=*/true);
      if (valid > 0) cut_valid(text.substr(begin, valid), begin);
      begin += valid;
      const auto others = length_of_part(text.substr(begin), /*valid=*/false);
      if (others > 0) f_({begin, begin + others, false});
      begin += others;
    }
  }

 private:
  // `offset` is the position of this part in the text. After an empty match, the next search begins at the same
  // position. If it finds the same match, the search after it begins at the next character.
  void cut_valid(std::string_view text, std::size_t offset) {
    constexpr auto kNone = static_cast<std::size_t>(-1);
    std::size_t done = 0, end_of_match = kNone;
    for (std::size_t from = 0; from <= text.size();) {
      const int found = match(text, from);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        throw DataError(pattern_.name_ + ": its regular expression cannot cut a text of " +
                        std::to_string(text.size()) + " bytes into words: at byte " + std::to_string(from) + ", " +
                        message_of(found) + "; the text begins there with \"" + beginning_of(text.substr(from)) + '"');
      }
      const auto* const ends = pcre2_get_ovector_pointer(match_.get());
      const std::size_t first = ends[0], last = ends[1];
      if (first == last && first == end_of_match) {
        from += std::max<std::size_t>(unicode::size_of_character(text.substr(from, 4)), 1);
        continue;
      }
      if (first > done) f_({offset + done, offset + first, false});
      f_({offset + first, offset + last, true});
      done = from = end_of_match = last;
    }
    if (done < text.size()) f_({offset + done, offset + text.size(), false});
  }

  int match(std::string_view text, std::size_t from) {
    const auto once = [&] {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK,
                         match_.get(), context_.get());
    };
    const int found = once();
    if (found != PCRE2_ERROR_JIT_STACKLIMIT || stack_) return found;
    // Sizes in bytes. A long word needs several hundred bytes per character.
    constexpr std::size_t kFirst = 64 << 10, kMost = 256 << 20;
    stack_.reset(pcre2_jit_stack_create(kFirst, kMost, nullptr));
    if (!stack_) return found;
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return once();
  }

  static std::string beginning_of(std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::size_t end = 0;
    while (end < std::min(text.size(), kShown)) {
      end += std::max<std::size_t>(unicode::size_of_character(text.substr(end, 4)), 1);
    }
    return std::string(text.substr(0, end));
  }

  const WordPattern& pattern_;
  const pcre2_code* code_;
  const std::function<void(Span)>& f_;
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match_{
      pcre2_match_data_create_from_pattern(code_, nullptr), &pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context_{
      pcre2_match_context_create(nullptr), &pcre2_match_context_free};
  std::unique_ptr<pcre2_jit_stack, decltype(&pcre2_jit_stack_free)> stack_{nullptr, &pcre2_jit_stack_free};
};

WordPattern::WordPattern(const std::string& pattern, const std::string& name) : name_(name) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  // \C would match parts of characters.
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  auto* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error, &offset, nullptr);
  compiled_ = std::make_unique<Compiled>(Compiled{{code, &pcre2_code_free}});
  if (!compiled_->code) {
    throw DataError(name + ": the pattern \"" + pattern + "\" at character " + std::to_string(offset) + ": " +
                    message_of(error));
  }
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // slower, but correct, without a JIT
}

WordPattern::~WordPattern() = default;

void WordPattern::for_each_span(std::string_view text, const std::function<void(Span)>& f) const {
  Cutter(*this, f).cut(text);
}

std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    const bool letter = value >= 0x80 || (value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z') ||
                        (value >= '0' && value <= '9');
    if (value < 0x20) {
      constexpr const char* kDigits = "0123456789abcdef";
      pattern += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
      continue;
    }
    if (!letter) pattern += '\\';
    pattern += byte;
  }
  return pattern;
}

}  // namespace phalanx
