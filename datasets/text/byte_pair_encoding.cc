// Byte-level byte-pair encoding (Sennrich et al. 2015, Neural Machine Translation of Rare Words with Subword Units,
// arXiv:1508.07909, algorithm 1; over bytes: Radford et al. 2019, section 2.2). A text is cut into words by a regular
// expression; of the neighbours in a word, those whose merge comes first in the list become one, until none can.
#include "datasets/text/byte_pair_encoding.h"

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "datasets/text/merges.h"
#include "datasets/text/special_tokens.h"
#include "datasets/text/word_pattern.h"
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

class BytePairEncoding final : public Tokenizer {
 public:
  BytePairEncoding(const BytePairs& pairs, const std::string& name)
      : name_(name),
        words_(pairs.pattern.empty() ? kGpt2Pattern : pairs.pattern, name),
        special_(pairs.special),
        added_(pairs.added) {
    read_vocabulary(pairs);
    for (const auto& [left, right] : pairs.merges) {
      merges_.add(number_of(pairs, left), number_of(pairs, right), number_of(pairs, left + right));
    }
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(texts_.size()); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    KnownWords known;
    cut(special_, text, tokens, [&](std::string_view part) {
      cut(added_, part, tokens, [&](std::string_view rest) {
        words_.cut(rest, [&](std::string_view word) { append(word, known, tokens); });
      });
    });
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
  using KnownWords = std::unordered_map<std::string_view, std::vector<std::int64_t>>;

  // Calls `rest` with what lies between the tokens of `special`.
  template <class Rest>
  static void cut(const SpecialTokens& special, std::string_view text, std::vector<std::int64_t>& tokens,
                  const Rest& rest) {
    std::size_t begin = 0;
    for (const auto& found : special.find(text)) {
      if (found.begin > begin) rest(text.substr(begin, found.begin - begin));
      tokens.push_back(found.token);
      begin = found.begin + found.size;
    }
    if (begin < text.size()) rest(text.substr(begin));
  }

  void read_vocabulary(const BytePairs& pairs) {
    const auto letters = alphabet();
    std::map<std::string, char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      bytes[letters[byte]] = static_cast<char>(byte);
      const auto found = pairs.vocabulary.find(letters[byte]);
      if (found != pairs.vocabulary.end()) bytes_[byte] = found->second;
    }
    // Some vocabularies leave numbers out, but memory, and a model's embedding, grow with the largest one.
    const auto most = 2 * std::ssize(pairs.vocabulary) + 2 * std::ssize(pairs.special) + 2 * std::ssize(pairs.added);
    const auto put = [&](std::int64_t number, std::string text) {
      if (number < 0 || number >= most) {
        throw DataError(name_ + ": token \"" + text + "\" has the number " + std::to_string(number) +
                        "; numbers of so few tokens lie in [0, " + std::to_string(most) + ")");
      }
      if (number >= size()) texts_.resize(static_cast<std::size_t>(number) + 1);
      texts_[static_cast<std::size_t>(number)] = std::move(text);
    };
    for (const auto& [token, number] : pairs.vocabulary) put(number, spelled(token, bytes));
    for (const auto* texts : {&pairs.special, &pairs.added}) {
      for (const auto& [text, number] : *texts) {
        if (text.empty()) throw DataError(name_ + ": the added token " + std::to_string(number) + " has no text");
        put(number, text);
      }
    }
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

  void append(std::string_view word, KnownWords& known, std::vector<std::int64_t>& tokens) const {
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
    return merges_.apply(tokens);
  }

  std::string name_;
  WordPattern words_;
  SpecialTokens special_, added_;
  std::vector<std::string> texts_;                      // by token
  std::array<std::optional<std::int64_t>, 256> bytes_;  // the token of each
  Merges merges_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_pair_encoding(const BytePairs& pairs, const std::string& name) {
  return std::make_unique<BytePairEncoding>(pairs, name);
}

}  // namespace phalanx
