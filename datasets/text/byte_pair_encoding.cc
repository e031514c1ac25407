// Byte-level byte-pair encoding (Sennrich et al. 2015, Neural Machine Translation of Rare Words with Subword Units,
// arXiv:1508.07909, algorithm 1; over bytes: Radford et al. 2019, section 2.2). A text is cut into words by a regular
// expression; of the neighbours in a word, those whose merge comes first in the list become one, until none can.
#define PCRE2_CODE_UNIT_WIDTH 8

#include "datasets/text/byte_pair_encoding.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string utf8(unsigned code) {  // of at most 11 bits
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's alphabet: printable characters of Latin-1 stand for themselves, the other bytes for those from U+0100 on.
std::array<std::string, 256> alphabet() {
  std::array<std::string, 256> letters;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    letters[byte] = utf8(printable ? byte : next++);
  }
  return letters;
}

using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using Match = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

Code compile(const std::string& pattern, const std::string& name) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr),
            &pcre2_code_free);
  if (code) {
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // where there is none, it is slower
    return code;
  }
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  throw DataError(name + ": the pattern \"" + pattern + "\" at character " + std::to_string(offset) + ": " +
                  reinterpret_cast<const char*>(message.data()));
}

struct PairHash {
  std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& pair) const {
    return std::hash<std::int64_t>()(pair.first * 0x9e3779b97f4a7c15 + pair.second);
  }
};

class BytePairEncoding final : public Tokenizer {
 public:
  BytePairEncoding(const BytePairs& pairs, const std::string& name)
      : name_(name),
        words_(compile(pairs.pattern.empty() ? kGpt2Pattern : pairs.pattern, name)),
        special_(pairs.special.begin(), pairs.special.end()) {
    read_vocabulary(pairs);
    for (const auto& [left, right] : pairs.merges) {
      const auto merged = number_of(pairs, left + right);
      merges_.try_emplace({number_of(pairs, left), number_of(pairs, right)},
                          Merge{static_cast<std::int64_t>(merges_.size()), merged});
    }
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(texts_.size()); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    while (!text.empty()) {
      const auto [begin, special] = first_special(text);
      encode_words(text.substr(0, begin), tokens);
      if (special == nullptr) break;
      tokens.push_back(special->second);
      text.remove_prefix(begin + special->first.size());
    }
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) {
      if (token < 0 || token >= size()) {
        throw std::out_of_range("token " + std::to_string(token) + " of " + std::to_string(size()));
      }
      text += texts_[static_cast<std::size_t>(token)];
    }
    return text;
  }

 private:
  struct Merge {
    std::int64_t rank, merged;
  };
  using Special = std::pair<std::string, std::int64_t>;

  void read_vocabulary(const BytePairs& pairs) {
    const auto letters = alphabet();
    std::map<std::string, char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      bytes[letters[byte]] = static_cast<char>(byte);
      const auto found = pairs.vocabulary.find(letters[byte]);
      if (found != pairs.vocabulary.end()) bytes_[byte] = found->second;
    }
    const auto put = [&](std::int64_t number, std::string text) {
      constexpr std::int64_t kMost = std::int64_t{1} << 28;
      if (number < 0 || number > kMost) {
        throw DataError(name_ + ": token \"" + text + "\" has the number " + std::to_string(number));
      }
      if (number >= size()) texts_.resize(static_cast<std::size_t>(number) + 1);
      texts_[static_cast<std::size_t>(number)] = std::move(text);
    };
    for (const auto& [token, number] : pairs.vocabulary) put(number, spelled(token, bytes));
    for (const auto& [text, number] : pairs.special) put(number, text);
  }

  // What the letters of a token stand for; itself, where one stands for nothing.
  static std::string spelled(const std::string& token, const std::map<std::string, char>& bytes) {
    std::string text;
    for (std::size_t i = 0; i < token.size();) {
      const std::size_t length = (static_cast<unsigned char>(token[i]) & 0x80U) == 0 ? 1 : 2;
      const auto found = bytes.find(token.substr(i, length));
      if (found == bytes.end()) return token;
      text += found->second;
      i += length;
    }
    return text;
  }

  std::int64_t number_of(const BytePairs& pairs, const std::string& token) const {
    const auto found = pairs.vocabulary.find(token);
    if (found != pairs.vocabulary.end()) return found->second;
    throw DataError(name_ + ": a merge has the token \"" + token + "\", which is not in the vocabulary");
  }

  // The first special text, the longest where several begin there.
  std::pair<std::size_t, const Special*> first_special(std::string_view text) const {
    std::pair<std::size_t, const Special*> first{text.size(), nullptr};
    for (const auto& special : special_) {
      const auto begin = text.find(special.first);
      if (begin == std::string_view::npos || begin > first.first) continue;
      const bool longer = first.second == nullptr || special.first.size() > first.second->first.size();
      if (begin < first.first || longer) first = {begin, &special};
    }
    return first;
  }

  void encode_words(std::string_view text, std::vector<std::int64_t>& tokens) const {
    const Match match(pcre2_match_data_create_from_pattern(words_.get(), nullptr), &pcre2_match_data_free);
    std::unordered_map<std::string_view, std::vector<std::int64_t>> known;  // words of this text
    std::size_t begin = 0;
    while (begin < text.size()) {
      const int found = pcre2_match(words_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin, 0,
                                    match.get(), nullptr);
      const auto* const ends = pcre2_get_ovector_pointer(match.get());
      // What the pattern leaves out, such as bytes that are no UTF-8, is a word.
      const std::size_t first = found > 0 ? ends[0] : text.size(), last = found > 0 ? ends[1] : text.size();
      if (first > begin) append(text.substr(begin, first - begin), known, tokens);
      if (last > first) append(text.substr(first, last - first), known, tokens);
      begin = std::max(last, begin + (last == first && first == begin ? 1 : 0));
    }
  }

  void append(std::string_view word, std::unordered_map<std::string_view, std::vector<std::int64_t>>& known,
              std::vector<std::int64_t>& tokens) const {
    const auto [entry, is_new] = known.try_emplace(word);
    if (is_new) entry->second = merged(word);
    tokens.insert(tokens.end(), entry->second.begin(), entry->second.end());
  }

  std::vector<std::int64_t> merged(std::string_view word) const {
    std::vector<std::int64_t> tokens;
    for (const char letter : word) {
      const auto token = bytes_[static_cast<unsigned char>(letter)];
      if (!token) {
        throw DataError(name_ + ": the vocabulary has no token for the byte " +
                        std::to_string(static_cast<unsigned char>(letter)));
      }
      tokens.push_back(*token);
    }
    for (;;) {
      Merge best{std::numeric_limits<std::int64_t>::max(), -1};
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto found = merges_.find({tokens[i], tokens[i + 1]});
        if (found != merges_.end() && found->second.rank < best.rank) best = found->second;
      }
      if (best.merged < 0) return tokens;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i + 1 < tokens.size()) {
          const auto found = merges_.find({tokens[i], tokens[i + 1]});
          if (found != merges_.end() && found->second.rank == best.rank) {
            tokens[kept++] = best.merged;
            ++i;
            continue;
          }
        }
        tokens[kept++] = tokens[i];
      }
      tokens.resize(kept);
    }
  }

  std::string name_;
  Code words_;
  std::vector<Special> special_;
  std::vector<std::string> texts_;                      // by token
  std::array<std::optional<std::int64_t>, 256> bytes_;  // the token of each
  std::unordered_map<std::pair<std::int64_t, std::int64_t>, Merge, PairHash> merges_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_pair_encoding(const BytePairs& pairs, const std::string& name) {
  return std::make_unique<BytePairEncoding>(pairs, name);
}

}  // namespace phalanx
