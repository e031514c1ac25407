// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Words in the values of command line flags. All throw ConfigError that names the flag.
namespace phalanx::bench {

/// What is between the commas, without empty ones.
std::vector<std::string> words_of(const std::string& text);

/// Throws, with what is near, unless `word` is one of `known`.
void check_word(const std::string& flag, const std::string& word, const std::vector<std::string>& known);

/// The words of a list, each once: some of `known`, or any where nothing is said to be known. Throws where it has none.
std::vector<std::string> choose(const std::string& flag, const std::string& text,
                                const std::vector<std::string>& known = {});

/// The same for a list that may be empty.
std::vector<std::string> choose_any(const std::string& flag, const std::string& text,
                                    const std::vector<std::string>& known = {});

/// One of `known`.
std::string choose_one(const std::string& flag, const std::string& text, const std::vector<std::string>& known);

}  // namespace phalanx::bench
