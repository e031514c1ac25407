// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Functions that read words from the values of command line flags. All throw a ConfigError that names the flag.
namespace phalanx::bench {

/// Returns the words between the commas, without empty ones.
std::vector<std::string> words_of(const std::string& text);

/// Throws unless `word` is one of `known`; the error suggests similar words.
void check_word(const std::string& flag, const std::string& word, const std::vector<std::string>& known);

/// Returns the words of a list without duplicates. They must be in `known`, unless `known` is empty. Throws if the list
/// is empty.
std::vector<std::string> choose(const std::string& flag, const std::string& text,
                                const std::vector<std::string>& known = {});

/// The same for a list that may be empty.
std::vector<std::string> choose_any(const std::string& flag, const std::string& text,
                                    const std::vector<std::string>& known = {});

/// Returns the word of `text`, which must be one of `known`.
std::string choose_one(const std::string& flag, const std::string& text, const std::vector<std::string>& known);

}  // namespace phalanx::bench
