// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/tokenizer.h"

#include <filesystem>
#include <stdexcept>

#include "datasets/text/sentence_piece.h"
#include "datasets/text/tokenizer_json.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

class Bytes final : public Tokenizer {
 public:
  std::int64_t size() const override { return 256; }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) {
      if (token < 0 || token > 255) throw std::out_of_range("token " + std::to_string(token) + " is not a byte");
      text += static_cast<char>(token);
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name) {
  if (name == "bytes") return std::make_unique<Bytes>();
  const fs::path path = name;
  std::error_code unreadable;
  if (fs::is_regular_file(path, unreadable)) {
    return path.extension() == ".model" ? make_sentence_piece(path) : read_tokenizer_json(path);
  }
  // A folder with a SentencePiece model may also have a tokenizer.json; the model takes precedence.
  for (const char* file : {"tokenizer.model", "spiece.model"}) {
    if (fs::is_regular_file(path / file, unreadable)) return make_sentence_piece(path / file);
  }
  if (fs::is_regular_file(path / "tokenizer.json", unreadable)) return read_tokenizer_json(path / "tokenizer.json");
  if (fs::is_regular_file(path / "vocab.json", unreadable)) return read_gpt2_files(path);
  throw DataError("tokenizer \"" + name +
                  "\": neither bytes, nor a tokenizer.json or NAME.model, nor a folder with one of these or with "
                  "vocab.json and merges.txt");
}

}  // namespace phalanx
