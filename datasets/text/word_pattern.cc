#define PCRE2_CODE_UNIT_WIDTH 8

#include "datasets/text/word_pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

// The length of the character in UTF-8 that a text begins with; 0 where it begins with none (RFC 3629).
std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  // Longer forms than needed, halves of surrogates, and what lies beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) return 0;
  return length;
}

// Returns the length of the longest prefix of a text that is UTF-8 or, if `valid` is false, that has no character of
// UTF-8.
std::size_t length_of_part(std::string_view text, bool valid) {
  std::size_t end = 0;
  while (end < text.size()) {
    const auto length = length_of_character(text.substr(end, 4));
    if ((length > 0) != valid) break;
    end += std::max<std::size_t>(length, 1);
  }
  return end;
}

}  // namespace

struct WordPattern::Compiled {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code;
};

// Cuts one text. It checks what is UTF-8 once, since PCRE2 would look at the rest of the text for each word.
class WordPattern::Cutter {
 public:
  Cutter(const WordPattern& pattern, const std::function<void(std::string_view)>& word)
      : pattern_(pattern), code_(pattern.compiled_->code.get()), word_(word) {}

  void cut(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto valid = length_of_part(text.substr(begin), /*valid=*/true);
      cut_valid(text.substr(begin, valid));
      begin += valid;
      const auto others = length_of_part(text.substr(begin), /*valid=*/false);
      if (others > 0) word_(text.substr(begin, others));
      begin += others;
    }
  }

 private:
  void cut_valid(std::string_view text) {
    std::size_t done = 0;
    for (auto from = done; from < text.size();) {
      const int found = match(text, from);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) {
        throw DataError(pattern_.name_ + ": its regular expression cannot cut a text of " +
                        std::to_string(text.size()) + " bytes into words: at byte " + std::to_string(from) + ", " +
                        message_of(found) + "; the text begins there with \"" + beginning_of(text.substr(from)) + '"');
      }
      const auto* const ends = pcre2_get_ovector_pointer(match_.get());
      // With \K a match may end before it begins.
      const std::size_t first = std::max<std::size_t>(ends[0], done), last = ends[1];
      if (first > done) word_(text.substr(done, first - done));
      if (last > first) word_(text.substr(first, last - first));
      done = std::max(first, last);
      // After an empty match the search goes on behind the next character, which the pattern may leave out.
      from = last > first ? done : done + std::max<std::size_t>(length_of_character(text.substr(done, 4)), 1);
    }
    if (done < text.size()) word_(text.substr(done));
  }

  int match(std::string_view text, std::size_t from) {
    const auto once = [&] {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK,
                         match_.get(), context_.get());
    };
    const int found = once();
    if (found != PCRE2_ERROR_JIT_STACKLIMIT || stack_) return found;
    constexpr std::size_t kFirst = 64 << 10, kMost = 256 << 20;  // bytes; long words need a few hundred per letter
    stack_.reset(pcre2_jit_stack_create(kFirst, kMost, nullptr));
    if (!stack_) return found;
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return once();
  }

  static std::string beginning_of(std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::size_t end = 0;
    while (end < std::min(text.size(), kShown)) {
      end += std::max<std::size_t>(length_of_character(text.substr(end, 4)), 1);
    }
    return std::string(text.substr(0, end));
  }

  const WordPattern& pattern_;
  const pcre2_code* code_;
  const std::function<void(std::string_view)>& word_;
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match_{
      pcre2_match_data_create_from_pattern(code_, nullptr), &pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context_{
      pcre2_match_context_create(nullptr), &pcre2_match_context_free};
  std::unique_ptr<pcre2_jit_stack, decltype(&pcre2_jit_stack_free)> stack_{nullptr, &pcre2_jit_stack_free};
};

WordPattern::WordPattern(const std::string& pattern, const std::string& name) : name_(name) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;  // \C would halve characters
  auto* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error, &offset, nullptr);
  compiled_ = std::make_unique<Compiled>(Compiled{{code, &pcre2_code_free}});
  if (!compiled_->code) {
    throw DataError(name + ": the pattern \"" + pattern + "\" at character " + std::to_string(offset) + ": " +
                    message_of(error));
  }
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // without a JIT it is slower
}

WordPattern::~WordPattern() = default;

void WordPattern::cut(std::string_view text, const std::function<void(std::string_view)>& word) const {
  Cutter(*this, word).cut(text);
}

}  // namespace phalanx
