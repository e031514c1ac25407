#include "datasets/text/sentence_piece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, which stands for a space in pieces
constexpr std::string_view kUnknown = " \xE2\x81\x87 ";
constexpr std::size_t kLongest = std::size_t{1} << 16;

// Where to cut a text that is too long: before the first line feed behind kLongest bytes that follows another letter.
// Several in a row may be one piece.
std::size_t end_of_part(std::string_view text) {
  auto end = kLongest;
  while (end < text.size() && (text[end] != '\n' || text[end - 1] == '\n')) ++end;
  return std::min(end, text.size());
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
    const auto loaded = processor_.LoadFromSerializedProto(read_file(file));
    if (!loaded.ok() || processor_.GetPieceSize() == 0) {
      throw DataError(file + ": not a model as SentencePiece's trainer writes it: " +
                      (loaded.ok() ? "it has no pieces" : loaded.ToString()));
    }
    space_ = processor_.PieceToId(kSpace);
    begins_with_space_ = processor_.DecodePieces(std::vector<std::string>{std::string(kSpace) + "a"}) == "a";
    keeps_lines_ = encoded("a\na") != encoded("a a");
    refuse_other_texts(file);
  }

  std::int64_t size() const override { return processor_.GetPieceSize(); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    bool first = true;
    while (!text.empty()) {
      auto part = text.substr(0, end_of_part(text));
      text.remove_prefix(part.size());
      // The space that each encoding begins with, where the model has one, is that of the line feed; or, where line
      // feeds are kept, one too many.
      if (!first && begins_with_space_ && !keeps_lines_) part.remove_prefix(1);
      const auto numbers = encoded(part);
      const bool extra = !first && begins_with_space_ && keeps_lines_ && !numbers.empty() && numbers[0] == space_;
      tokens.insert(tokens.end(), numbers.begin() + (extra ? 1 : 0), numbers.end());
      first = false;
    }
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    bool first = begins_with_space_;
    for (const auto token : tokens) {
      if (token < 0 || token >= size()) {
        throw std::out_of_range("token " + std::to_string(token) + " is none of " + std::to_string(size()));
      }
      auto piece = text_of(static_cast<int>(token));
      if (first && piece.starts_with(' ')) piece.erase(0, 1);
      first &= processor_.IsControl(static_cast<int>(token));
      text += piece;
    }
    return text;
  }

 private:
  // A model may have rules that change a text once more after decoding; they depend on all of it.
  void refuse_other_texts(const std::string& file) const {
    for (std::int64_t token = 0; token < size(); ++token) {
      const auto number = static_cast<int>(token);
      if (processor_.IsByte(number) || processor_.IsControl(number) || processor_.IsUnknown(number)) continue;
      if (processor_.DecodeIds({number}) == decode(std::array{token})) continue;
      throw DataError(file +
                      ": has rules for the text of its pieces (a denormalizer), of which Phalanx knows nothing: \"" +
                      processor_.IdToPiece(number) + "\" is \"" + processor_.DecodeIds({number}) + "\"");
    }
  }

  std::vector<int> encoded(std::string_view text) const {
    std::vector<int> numbers;
    const auto status = processor_.Encode(text, &numbers);
    if (!status.ok()) throw DataError("SentencePiece cannot number a text: " + status.ToString());
    return numbers;
  }

  std::string text_of(int token) const {
    if (processor_.IsControl(token)) return {};
    if (processor_.IsUnknown(token)) return std::string(kUnknown);
    const auto& piece = processor_.IdToPiece(token);  // of a byte: <0x0A>
    if (processor_.IsByte(token)) return {static_cast<char>(std::stoi(piece.substr(1, 4), nullptr, 16))};
    return with_spaces(piece);
  }

  SentencePieceProcessor processor_;
  int space_ = 0;
  bool begins_with_space_ = false;  // what it makes of a text
  bool keeps_lines_ = false;        // a line feed is no space
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentence_piece(const std::string& file) {
  return std::make_unique<SentencePiece>(file);
}

}  // namespace phalanx
