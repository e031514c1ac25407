// A text file as characters to be guessed, each from those before it: input [n, context] int64 -> target
// [n, context] int64, the same characters one further on. A character is a byte, and its number is its place among the
// sorted distinct bytes of the whole file, of which there are `classes`. The begin of the file is for training, the
// rest for testing, and no sample crosses the border.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/text/tokenizer.h"
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
  std::int64_t context = 64;
  std::int64_t stride = 0;
  double train_share = 0.9;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the file; empty: ${PHALANX_DATA}/text, else data/text");
    v("file", file, "text file, in root or the current folder; empty: input.txt in root");
    v("context", context, "characters per sample", config::between(1, 1 << 20));
    v("stride", stride, "distance between training samples, in characters; 0: context, so that they do not overlap",
      config::at_least(0));
    v("train_share", train_share, "part of the file to train on; the rest is for testing",
      {.min = 0, .max = 1, .exclusive = true});
  }
};

class Text final : public Dataset {
 public:
  // Sample i has the `context` characters from i * stride; the last one's targets still lie in `characters`.
  Text(std::vector<std::uint8_t> characters, std::int64_t context, std::int64_t classes, std::int64_t stride)
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
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " of ", size());
      const auto* first = characters_.data() + index * stride_;
      input = std::copy_n(first, context_, input);
      target = std::copy_n(first + 1, context_, target);
    }
  }

 private:
  std::vector<std::uint8_t> characters_;  // by number
  SampleSpec spec_;
  std::int64_t context_, stride_;
};

// Where a relative path of a config starts, unless the dataset has a folder of its own.
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

// The bytes that occur in a text, each with its place among them as its number.
class Characters final : public Tokenizer {
 public:
  explicit Characters(std::string_view text) {
    std::array<bool, 256> occurs{};
    for (const char c : text) occurs[static_cast<std::uint8_t>(c)] = true;
    numbers_.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (!occurs[byte]) continue;
      numbers_[byte] = size();
      bytes_.push_back(static_cast<char>(byte));
    }
  }

  std::int64_t size() const override { return std::ssize(bytes_); }

  std::vector<std::int64_t> encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (const char c : text) {
      tokens.push_back(number_of(c));
      if (tokens.back() >= 0) continue;
      const config::Node character{.kind = config::Node::Kind::kScalar, .text = {c}};
      throw DataError("the text has " + config::what_is(character) + ", which does not occur in the dataset's");
    }
    return tokens;
  }

  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const auto token : tokens) text += bytes_.at(static_cast<std::size_t>(token));
    return text;
  }

  std::int64_t number_of(char c) const { return numbers_[static_cast<std::uint8_t>(c)]; }

 private:
  std::array<std::int64_t, 256> numbers_{};  // of each byte; -1: it does not occur
  std::string bytes_;                        // by number
};

void require_a_sample(const fs::path& file, const std::string& split, std::int64_t characters, std::int64_t context) {
  if (characters > context) return;
  throw DataError(file.string() + ": " + std::to_string(characters) + " characters remain for " + split +
                  ", but a sample needs " + std::to_string(context + 1) +
                  " (dataset.context and one more). Use a longer text, a smaller context or a different train_share");
}

Splits load_text(const TextConfig& config) {
  const fs::path file = find_text(config);
  const std::string text = read_file(file.string());
  auto vocabulary = std::make_shared<const Characters>(text);
  const auto classes = vocabulary->size();
  std::vector<std::uint8_t> characters;
  for (const char c : text) characters.push_back(static_cast<std::uint8_t>(vocabulary->number_of(c)));

  const auto border = static_cast<std::int64_t>(static_cast<double>(text.size()) * config.train_share);
  require_a_sample(file, "training", border, config.context);
  require_a_sample(file, "testing", std::ssize(text) - border, config.context);
  const auto middle = characters.begin() + border;
  return {
      .train = std::make_shared<Text>(std::vector(characters.begin(), middle), config.context, classes,
                                      config.stride == 0 ? config.context : config.stride),
      .test = std::make_shared<Text>(std::vector(middle, characters.end()), config.context, classes, config.context),
      .tokenizer = std::move(vocabulary)};
}

const bool registered = Datasets::global().add<TextConfig>("text", "a text file, character by character", load_text);

}  // namespace
}  // namespace phalanx
