// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace phalanx::unicode {

/// The code points from first to last.
struct Range {
  char32_t first, last;
};

/// Classes of characters as Hugging Face's tokenizers 0.23 have them, sorted. Each is of another version of Unicode.
extern const std::array<Range, 156> kPunctuation;      // of the pre-tokenizers Punctuation and BertPreTokenizer
extern const std::array<Range, 146> kNumeric;          // of Digits
extern const std::array<Range, 796> kWord;             // of Whitespace, and around added tokens that are single words
extern const std::array<Range, 250> kMarks;            // that the normalizer StripAccents removes
extern const std::array<Range, 266> kNonspacingMarks;  // that BertNormalizer removes with strip_accents
extern const std::array<Range, 25> kControl;           // that BertNormalizer removes with clean_text

}  // namespace phalanx::unicode
