// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/sentence_piece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "datasets/text/sentence_piece_model.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr std::string_view kSpace = "\xE2\x96\x81";     // U+2581, which represents a space in pieces
constexpr std::size_t kLongest = std::size_t{1} << 20;  // length in bytes above which a text is cut
constexpr std::size_t kAround = std::size_t{1} << 11;   // bytes on each side of a cut that are compared
constexpr int kMaxCuts = 64;                            // cuts to try before a text is left uncut

// Returns the first position from `from` on where a text may be cut: before a line feed that follows another character.
// Consecutive line feeds may be one piece, so they are not separated.
std::size_t place_of_cut(std::string_view text, std::size_t from) {
  while (from < text.size() && (text[from] != '\n' || text[from - 1] == '\n')) ++from;
  return std::min(from, text.size());
}

std::string with_spaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const auto place = piece.find(kSpace);
    text += piece.substr(0, place);
    if (place == std::string_view::npos) break;
    text += ' ';
    piece.remove_prefix(place + kSpace.size());
  }
  return text;
}

class SentencePiece final : public Tokenizer {
 public:
  explicit SentencePiece(const std::string& file) {
    const std::string model = read_file(file);
    check_sentence_piece_model(file, model);
    const auto loaded = load(file, model);
    if (!loaded.ok() || processor_.GetPieceSize() == 0) {
      throw DataError(file + ": not a model that SentencePiece's trainer wrote: " +
                      (loaded.ok() ? "it has no pieces" : loaded.ToString()));
    }
    space_ = processor_.PieceToId(kSpace);
    unknown_ = processor_.DecodeIds({processor_.unk_id()});
    drops_first_space_ = drops_first_space();
    refuse_other_texts(file);
  }

  std::int64_t size() const override { return processor_.GetPieceSize(); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    auto begins = Join::kWhole;
    for (;;) {
      const auto [end, next] = cut_of(text);
      const auto part = tokens_of(text.substr(0, end), begins);
      tokens.insert(tokens.end(), part.begin(), part.end());
      if (end == text.size()) return tokens;
      text.remove_prefix(end);
      begins = next;
    }
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    bool first = drops_first_space_;
    for (const auto token : tokens) {
      if (token < 0 || token >= size()) {
        throw std::out_of_range("token " + std::to_string(token) + " is out of range; the number of tokens is " +
                                std::to_string(size()));
      }
      auto piece = text_of(static_cast<int>(token));
      if (first && piece.starts_with(' ') && !processor_.IsUnknown(static_cast<int>(token))) piece.erase(0, 1);
      first &= processor_.IsControl(static_cast<int>(token));
      text += piece;
    }
    return text;
  }

 private:
  sentencepiece::util::Status load(const std::string& file, const std::string& model) {
    try {
      return processor_.LoadFromSerializedProto(model);
    } catch (const std::exception& error) {  // of the library's own trie
      throw DataError(file + ": SentencePiece cannot use the model: " + error.what());
    }
  }

  // Describes how to get the tokens of a part of a text from the tokens of the part alone. A space at the beginning of
  // a text may be a token, be part of the first word's token, or be dropped, and a line feed may count as a space.
  enum class Join { kWhole, kWithoutLineFeed, kWithoutSpace };

  struct Cut {
    std::size_t end;
    Join next;
  };

  std::vector<int> tokens_of(std::string_view part, Join begins) const {
    auto numbers = encoded(part.substr(begins == Join::kWithoutLineFeed ? 1 : 0));
    if (begins == Join::kWithoutSpace && !numbers.empty() && numbers[0] == space_) numbers.erase(numbers.begin());
    return numbers;
  }

  // Finds a position to cut a text that is too long, such that its tokens stay the same.
  Cut cut_of(std::string_view text) const {
    auto end = kLongest;
    for (int i = 0; i < kMaxCuts; ++i) {
      end = place_of_cut(text, end);
      if (end >= text.size()) break;
      const auto left = text.substr(end - kAround, kAround), right = text.substr(end, kAround);
      const auto both = encoded(text.substr(end - kAround, kAround + right.size())), first = encoded(left);
      for (const auto next : {Join::kWhole, Join::kWithoutLineFeed, Join::kWithoutSpace}) {
        auto joined = first;
        const auto last = tokens_of(right, next);
        joined.insert(joined.end(), last.begin(), last.end());
        if (joined == both) return {end, next};
      }
      ++end;
    }
    return {text.size(), Join::kWhole};
  }

  bool drops_first_space() const {
    for (std::int64_t token = 0; token < size(); ++token) {
      const auto number = static_cast<int>(token);
      if (processor_.IsByte(number) || processor_.IsControl(number) || processor_.IsUnknown(number)) continue;
      if (processor_.IdToPiece(number).starts_with(kSpace)) return !processor_.DecodeIds({number}).starts_with(' ');
    }
    return false;
  }

  // A model may have rules that change a text after decoding. They need the whole text, so such models are refused.
  void refuse_other_texts(const std::string& file) const {
    for (std::int64_t token = 0; token < size(); ++token) {
      const auto number = static_cast<int>(token);
      if (processor_.IsByte(number) || processor_.IsControl(number) || processor_.IsUnknown(number)) continue;
      if (processor_.DecodeIds({number}) == decode(std::array{token})) continue;
      throw DataError(file +
                      ": has rules for the text of its pieces (a denormalizer), which Phalanx does not support: \"" +
                      processor_.IdToPiece(number) + "\" is \"" + processor_.DecodeIds({number}) + "\"");
    }
  }

  std::vector<int> encoded(std::string_view text) const {
    std::vector<int> numbers;
    const auto status = processor_.Encode(text, &numbers);
    if (!status.ok()) throw DataError("SentencePiece cannot tokenize a text: " + status.ToString());
    return numbers;
  }

  std::string text_of(int token) const {
    if (processor_.IsControl(token)) return {};
    if (processor_.IsUnknown(token)) return unknown_;
    const auto& piece = processor_.IdToPiece(token);  // <0x0A> for a byte
    if (processor_.IsByte(token)) return {static_cast<char>(std::stoi(piece.substr(1, 4), nullptr, 16))};
    return with_spaces(piece);
  }

  SentencePieceProcessor processor_;
  int space_ = 0;
  std::string unknown_;             // text of the unknown token
  bool drops_first_space_ = false;  // when decoding
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentence_piece(const std::string& file) {
  return std::make_unique<SentencePiece>(file);
}

}  // namespace phalanx
