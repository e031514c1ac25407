// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/added_tokens.h"

#include <algorithm>
#include <map>
#include <utility>

#include "datasets/text/unicode.h"

namespace phalanx {
namespace {

std::map<std::string, std::int64_t> by_text(const std::vector<AddedToken>& tokens) {
  std::map<std::string, std::int64_t> places;
  for (const auto& token : tokens) places.emplace(token.text, std::ssize(places));
  return places;
}

// Removes tokens whose text is the same as an earlier token's.
std::vector<AddedToken> without_doubles(std::vector<AddedToken> tokens) {
  std::vector<AddedToken> kept;
  std::map<std::string, std::size_t> known;
  for (auto& token : tokens) {
    if (known.emplace(token.text, kept.size()).second) kept.push_back(std::move(token));
  }
  return kept;
}

bool is_single_word(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && unicode::is_word(unicode::last_character(text.substr(0, begin)).code)) return false;
  return end == text.size() || !unicode::is_word(unicode::first_character(text.substr(end)).code);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(without_doubles(std::move(tokens))), texts_(by_text(tokens_)) {}

void AddedTokens::find(std::string_view text, const std::function<void(std::int64_t)>& token,
                       const std::function<void(std::string_view, std::size_t)>& rest) const {
  std::size_t done = 0;
  for (const auto& found : texts_.find(text)) {
    const auto& added = tokens_[static_cast<std::size_t>(found.token)];
    auto begin = found.begin, end = found.begin + found.size;
    if (added.single_word && !is_single_word(text, begin, end)) continue;
    while (added.lstrip && begin > done) {
      const auto [code, size] = unicode::last_character(text.substr(done, begin - done));
      if (!unicode::is_white_space(code)) break;
      begin -= size;
    }
    while (added.rstrip && end < text.size()) {
      const auto [code, size] = unicode::first_character(text.substr(end));
      if (!unicode::is_white_space(code)) break;
      end += size;
    }
    // White space after the previous token may include this whole token. If this token takes white space before it, it
    // is then dropped; otherwise the library emits both tokens.
    if (added.lstrip && end <= done) continue;
    if (done < begin) rest(text.substr(done, begin - done), done);
    token(added.token);
    done = end;
  }
  if (done < text.size()) rest(text.substr(done), done);
}

}  // namespace phalanx
