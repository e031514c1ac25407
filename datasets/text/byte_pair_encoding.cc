// Byte-level byte-pair encoding (Sennrich et al. 2015, Neural Machine Translation of Rare Words with Subword Units,
// arXiv:1508.07909, algorithm 1; over bytes: Radford et al. 2019, section 2.2). A text is cut into words by a regular
// expression; of the neighbours in a word, those whose merge comes first in the list become one, until none can.
#define PCRE2_CODE_UNIT_WIDTH 8

#include "datasets/text/byte_pair_encoding.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
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

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

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
  throw DataError(name + ": the pattern \"" + pattern + "\" at character " + std::to_string(offset) + ": " +
                  message_of(error));
}

constexpr std::int64_t kGaps = 16, kMoreGaps = 65536;

struct PairHash {
  std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& pair) const {
    return std::hash<std::int64_t>()(pair.first * 0x9e3779b97f4a7c15 + pair.second);
  }
};

// Texts that are a token each, as a tree of their bytes: where one begins is found in one pass over a text, in a time that
// does not depend on how many there are.
class SpecialTexts {
 public:
  explicit SpecialTexts(const std::map<std::string, std::int64_t>& tokens) {
    for (const auto& [text, token] : tokens) {
      if (text.empty()) continue;  // would be found everywhere
      std::size_t node = 0;
      for (const char byte : text) {
        const auto [edge, is_new] = nodes_[node].next.try_emplace(byte, nodes_.size());
        node = edge->second;
        if (is_new) nodes_.emplace_back();
      }
      nodes_[node].token = token;
    }
  }

  // The length and token of the longest one that begins at a byte; length 0: none does.
  std::pair<std::size_t, std::int64_t> longest_at(std::string_view text, std::size_t begin) const {
    std::pair<std::size_t, std::int64_t> longest{0, -1};
    std::size_t node = 0;
    for (std::size_t end = begin; end < text.size();) {
      const auto edge = nodes_[node].next.find(text[end]);
      if (edge == nodes_[node].next.end()) break;
      node = edge->second;
      ++end;
      if (nodes_[node].token) longest = {end - begin, *nodes_[node].token};
    }
    return longest;
  }

 private:
  struct Node {
    std::map<char, std::size_t> next{};
    std::optional<std::int64_t> token{};
  };

  std::vector<Node> nodes_{1};
};

class BytePairEncoding final : public Tokenizer {
 public:
  BytePairEncoding(const BytePairs& pairs, const std::string& name)
      : name_(name),
        words_(compile(pairs.pattern.empty() ? kGpt2Pattern : pairs.pattern, name)),
        special_(pairs.special) {
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
    std::size_t words = 0;  // where those that are not encoded yet begin
    for (std::size_t begin = 0; begin < text.size();) {
      const auto [length, token] = special_.longest_at(text, begin);
      if (length == 0) {
        ++begin;
        continue;
      }
      encode_words(text.substr(words, begin - words), tokens);
      tokens.push_back(token);
      words = begin += length;
    }
    encode_words(text.substr(words), tokens);
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

  void read_vocabulary(const BytePairs& pairs) {
    const auto letters = alphabet();
    std::map<std::string, char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      bytes[letters[byte]] = static_cast<char>(byte);
      const auto found = pairs.vocabulary.find(letters[byte]);
      if (found != pairs.vocabulary.end()) bytes_[byte] = found->second;
    }
    // Numbers may have gaps, but models have an embedding for each.
    const auto entries = static_cast<std::int64_t>(pairs.vocabulary.size() + pairs.special.size());
    const std::int64_t most = kGaps * entries + kMoreGaps;
    const auto put = [&](std::int64_t number, std::string text) {
      if (number < 0 || number > most) {
        throw DataError(name_ + ": token \"" + text + "\" has the number " + std::to_string(number) + ", but there are " +
                        std::to_string(entries) + " tokens, whose numbers must be from 0 to " + std::to_string(most));
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

  void encode_words(std::string_view text, std::vector<std::int64_t>& tokens) const {
    const Match match(pcre2_match_data_create_from_pattern(words_.get(), nullptr), &pcre2_match_data_free);
    std::unordered_map<std::string_view, std::vector<std::int64_t>> known;  // words of this text
    std::size_t begin = 0;
    while (begin < text.size()) {
      const bool found = find_word(text, begin, match.get());
      const auto* const ends = pcre2_get_ovector_pointer(match.get());
      // What the pattern leaves out, such as bytes that are no UTF-8, is a word.
      const std::size_t first = found ? ends[0] : text.size(), last = found ? ends[1] : text.size();
      if (first > begin) append(text.substr(begin, first - begin), known, tokens);
      if (last > first) append(text.substr(first, last - first), known, tokens);
      begin = std::max(last, begin + (last == first && first == begin ? 1 : 0));
    }
  }

  // False: there is no further match.
  bool find_word(std::string_view text, std::size_t begin, pcre2_match_data* match) const {
    const auto find = [&](std::uint32_t options) {
      return pcre2_match(words_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin, options, match,
                         nullptr);
    };
    int found = find(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = find(PCRE2_NO_JIT);  // which takes memory from the heap
    if (found > 0) return true;
    if (found == PCRE2_ERROR_NOMATCH) return false;
    throw DataError(name_ + ": its pattern cannot be matched with a text of " + std::to_string(text.size()) +
                    " bytes, at byte " + std::to_string(begin) + ": " + message_of(found));
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
    return merge_neighbours(std::move(tokens));
  }

  // Merges neighbours until no merge applies: each time the pair of lowest rank, and among equal ranks the leftmost.
  std::vector<std::int64_t> merge_neighbours(std::vector<std::int64_t> tokens) const {
    struct Candidate {
      std::int64_t rank;
      std::size_t left, right;
      std::int64_t left_token, right_token;
      bool operator>(const Candidate& other) const {
        return std::tie(rank, left) > std::tie(other.rank, other.left);
      }
    };
    constexpr std::int64_t kGone = -1;
    std::vector<std::size_t> before(tokens.size()), after(tokens.size());
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
    const auto consider = [&](std::size_t left, std::size_t right) {
      const auto found = merges_.find({tokens[left], tokens[right]});
      if (found == merges_.end()) return;
      candidates.push({found->second.rank, left, right, tokens[left], tokens[right]});
    };
    for (std::size_t i = 0; i < tokens.size(); ++i) before[i] = i - 1, after[i] = i + 1;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) consider(i, i + 1);
    while (!candidates.empty()) {
      const auto [rank, left, right, left_token, right_token] = candidates.top();
      candidates.pop();
      // One of the two may have been merged with its other neighbour.
      if (tokens[left] != left_token || tokens[right] != right_token || after[left] != right) continue;
      tokens[left] = merges_.at({left_token, right_token}).merged;
      tokens[right] = kGone;
      after[left] = after[right];
      if (after[left] < tokens.size()) {
        before[after[left]] = left;
        consider(left, after[left]);
      }
      if (left > 0) consider(before[left], left);
    }
    std::erase(tokens, kGone);
    return tokens;
  }

  std::string name_;
  Code words_;
  SpecialTexts special_;
  std::vector<std::string> texts_;                      // by token
  std::array<std::optional<std::int64_t>, 256> bytes_;  // the token of each
  std::unordered_map<std::pair<std::int64_t, std::int64_t>, Merge, PairHash> merges_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_pair_encoding(const BytePairs& pairs, const std::string& name) {
  return std::make_unique<BytePairEncoding>(pairs, name);
}

}  // namespace phalanx
