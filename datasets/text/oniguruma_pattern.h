// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/json.h"

namespace phalanx {

/// Translates a regular expression of Oniguruma (https://github.com/kkos/oniguruma, doc/RE), which Hugging Face's
/// tokenizers use, to PCRE2's syntax, in which some classes, such as \s and \w, contain other characters. Throws
/// ConfigError for constructs without an equivalent. Characters newer than PCRE2's version of Unicode (14 and up) match
/// neither letters nor digits.
std::string from_oniguruma(const JsonValue& pattern);

/// Returns a pattern in PCRE2's syntax: the result of from_oniguruma() for {"Regex": PATTERN}, or a pattern that
/// matches exactly this text for {"String": TEXT}.
std::string pattern_of(const JsonValue& json);

}  // namespace phalanx
