// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/flag_words.h"

#include <algorithm>
#include <sstream>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::bench {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

void check_word(const std::string& flag, const std::string& word, const std::vector<std::string>& known) {
  if (std::ranges::find(known, word) != known.end()) return;
  const std::string near = nearest(word, known);
  throw ConfigError("--" + flag + ": \"" + word + "\" is not one of " + join(known, ", ") +
                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

std::vector<std::string> choose_any(const std::string& flag, const std::string& text,
                                    const std::vector<std::string>& known) {
  std::vector<std::string> chosen;
  for (const auto& word : words_of(text)) {
    if (!known.empty()) check_word(flag, word, known);
    if (std::ranges::find(chosen, word) == chosen.end()) chosen.push_back(word);
  }
  return chosen;
}

std::vector<std::string> choose(const std::string& flag, const std::string& text,
                                const std::vector<std::string>& known) {
  auto chosen = choose_any(flag, text, known);
  if (!chosen.empty()) return chosen;
  throw ConfigError("--" + flag + " is empty" + (known.empty() ? "" : "; choose from ") + join(known, ", "));
}

std::string choose_one(const std::string& flag, const std::string& text, const std::vector<std::string>& known) {
  const auto chosen = choose(flag, text, known);
  if (chosen.size() == 1) return chosen.front();
  throw ConfigError("--" + flag + ": expected one of " + join(known, ", ") + ", got \"" + text + "\"");
}

}  // namespace phalanx::bench
