// SPDX-License-Identifier: Apache-2.0
// A text file for language modelling by characters: input [n, context] int64, target [n, context] int64, the character
// that follows each position. A character is a code point or, with `unit: bytes`, a byte. Its number is its index among
// the `classes` sorted distinct characters of the whole file. The beginning of the file is for training, the rest for
// testing, and no sample crosses the border.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/text/tokenizer.h"
#include "datasets/text/unicode.h"
#include "framework/base/config/node.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct TextConfig {
  std::string root;
  std::string file;
  std::string unit = "characters";
  std::int64_t context = 64;
  std::int64_t stride = 0;
  double train_share = 0.9;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the file; empty: ${PHALANX_DATA}/text, else data/text");
    v("file", file, "text file, in root or the current folder; empty: input.txt in root");
    v("unit", unit, "what is predicted. characters: code points of a text in UTF-8; bytes: bytes of any file",
      config::one_of({"characters", "bytes"}));
    v("context", context, "characters per sample", config::between(1, 1 << 20));
    v("stride", stride, "distance between training samples, in characters; 0: context, so that they do not overlap",
      config::at_least(0));
    v("train_share", train_share, "share of the file to train on; the rest is for testing",
      {.min = 0, .max = 1, .exclusive = true});
  }
};

// T is an integer type that can hold the numbers of all characters.
template <class T>
class Text final : public Dataset {
 public:
  // Sample i has the `context` characters from i * stride. Even the last sample has all its targets in `characters`.
  Text(std::vector<T> characters, std::int64_t context, std::int64_t classes, std::int64_t stride)
      : characters_(std::move(characters)),
        spec_(language_samples(context, classes)),
        context_(context),
        stride_(stride) {}

  std::int64_t size() const override { return (std::ssize(characters_) - 1 - context_) / stride_ + 1; }
  const SampleSpec& spec() const override { return spec_; }

  bool samples_overlap() const override { return stride_ < context_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = static_cast<std::int64_t>(indices.size());
    auto* input = ensure(batch.inputs, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      const auto* first = characters_.data() + index * stride_;
      input = std::copy_n(first, context_, input);
      target = std::copy_n(first + 1, context_, target);
    }
  }

 private:
  std::vector<T> characters_;  // numbers of the characters of the text
  SampleSpec spec_;
  std::int64_t context_, stride_;
};

// Returns the path of the file. A relative `file` starts at the user's current folder, unless the config has a folder.
fs::path find_text(const TextConfig& config) {
  const bool called_from = config.root.empty() && !config.file.empty();
  const fs::path file =
      dataset_root(called_from ? "." : config.root, "text") / (config.file.empty() ? "input.txt" : config.file);
  const DatasetFiles files{
      .dataset = "text",
      .names = {file.filename()},
      .how_to_get =
          "Any text file will do. To use another one: set dataset.file to its path.\n"
          "A small one to start with, plays by Shakespeare:\n"
          "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"};
  return find_files(files, file.parent_path()).front();
}

// Calls f(code, position, size) for each character of a text, or each byte.
template <class F>
void for_each(std::string_view text, bool bytes, const F& f) {
  if (!bytes) return unicode::for_each_character(text, f);
  for (std::size_t at = 0; at < text.size(); ++at) {
    f(static_cast<char32_t>(static_cast<std::uint8_t>(text[at])), at, std::size_t{1});
  }
}

// Numbers each character of a text by its index among the distinct characters.
class Characters final : public Tokenizer {
 public:
  Characters(std::string_view text, bool bytes) : bytes_(bytes) {
    std::vector<bool> occurs(unicode::kFirstByte + 256);
    for_each(text, bytes, [&](char32_t code, std::size_t, std::size_t) { occurs[code] = true; });
    for (char32_t code = 0; code < occurs.size(); ++code) {
      if (!occurs[code]) continue;
      numbers_.emplace(code, size());
      codes_.push_back(code);
    }
  }

  std::int64_t size() const override { return std::ssize(codes_); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for_each(text, bytes_, [&](char32_t code, std::size_t at, std::size_t length) {
      const auto found = numbers_.find(code);
      if (found != numbers_.end()) return tokens.push_back(found->second);
      const config::Node character{.kind = config::Node::Kind::kScalar, .text = std::string(text.substr(at, length))};
      throw DataError("the text has " + config::what_is(character) +
                      ", which does not occur in the text of the dataset");
    });
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) {
      const auto code = codes_.at(static_cast<std::size_t>(token));
      if (bytes_) {
        text += static_cast<char>(code);
      } else {
        unicode::append(text, code);
      }
    }
    return text;
  }

 private:
  bool bytes_;
  std::unordered_map<char32_t, std::int64_t> numbers_;
  std::vector<char32_t> codes_;  // character by number
};

void require_utf8(const fs::path& file, std::string_view text) {
  unicode::for_each_character(text, [&](char32_t code, std::size_t at, std::size_t) {
    if (code < unicode::kFirstByte) return;
    throw DataError(file.string() + ": is not UTF-8 at byte " + std::to_string(at) +
                    "; convert it, or set dataset.unit to bytes");
  });
}

void require_a_sample(const fs::path& file, const std::string& split, std::int64_t characters, std::int64_t context) {
  if (characters > context) return;
  throw DataError(file.string() + ": " + std::to_string(characters) + " characters remain for " + split +
                  ", but a sample needs " + std::to_string(context + 1) +
                  " (dataset.context and one more). Use a longer text, a smaller context or a different train_share");
}

template <class T>
Splits splits_of(const TextConfig& config, const std::vector<std::int64_t>& numbers,
                 std::shared_ptr<const Tokenizer> vocabulary, std::int64_t border) {
  const auto part = [&](std::int64_t begin, std::int64_t end, std::int64_t stride) {
    return std::make_shared<Text<T>>(std::vector<T>(numbers.begin() + begin, numbers.begin() + end), config.context,
                                     vocabulary->size(), stride);
  };
  return {.train = part(0, border, config.stride == 0 ? config.context : config.stride),
          .test = part(border, std::ssize(numbers), config.context),
          .tokenizer = vocabulary};
}

Splits load_text(const TextConfig& config) {
  const fs::path file = find_text(config);
  const std::string text = read_file(file.string());
  const bool bytes = config.unit == "bytes";
  if (!bytes) require_utf8(file, text);
  const auto vocabulary = std::make_shared<const Characters>(text, bytes);
  const auto numbers = vocabulary->encode(text);
  const auto border = static_cast<std::int64_t>(static_cast<double>(numbers.size()) * config.train_share);
  require_a_sample(file, "training", border, config.context);
  require_a_sample(file, "testing", std::ssize(numbers) - border, config.context);
  if (vocabulary->size() <= 256) return splits_of<std::uint8_t>(config, numbers, vocabulary, border);
  return splits_of<std::uint32_t>(config, numbers, vocabulary, border);
}

const bool text_registered =
    Datasets::global().add<TextConfig>("text", "a text file, character by character", load_text);

}  // namespace
}  // namespace phalanx
