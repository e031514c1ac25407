// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace phalanx::unicode {

/// The code points from first to last.
struct Range {
  char32_t first, last;
};

/// Classes of characters as Hugging Face's tokenizers 0.23 define them, sorted. Each class follows a different version
/// of Unicode.
extern const std::array<Range, 156> kPunctuation;      // used by the pre-tokenizers Punctuation and BertPreTokenizer
extern const std::array<Range, 146> kNumeric;          // used by Digits
extern const std::array<Range, 796> kWord;             // used by Whitespace, and around added tokens with single_word
extern const std::array<Range, 250> kMarks;            // removed by the normalizer StripAccents
extern const std::array<Range, 266> kNonspacingMarks;  // removed by BertNormalizer with strip_accents
extern const std::array<Range, 25> kControl;           // removed by BertNormalizer with clean_text

}  // namespace phalanx::unicode
