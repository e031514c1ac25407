// A text file of documents, as sequences of tokens: input [n, context] int64 -> target [n, context] int64, the token
// that follows each. Documents are divided by lines that equal `separator`, empty ones by default. Behind each comes an
// end token, whose number is one above the tokenizer's. The first documents are for training, the rest for testing.
//
//   pack   documents one behind the other, cut every `context` tokens: nothing is padded, and a sample may have parts
//          of several documents
//   pad    a document has samples of its own; the last is padded with end tokens, whose targets are kIgnored. Samples
//          differ in length, so `bucketed` orders them by it
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/text/tokenizer.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct DocumentsConfig {
  std::string root;
  std::string file = "documents.txt";
  std::string separator;
  std::string tokenizer = "bytes";
  std::string packing = "pack";
  std::int64_t context = 256;
  double train_share = 0.9;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/documents, else data/documents");
    v("file", file, "text file");
    v("separator", separator, "line between two documents");
    v("tokenizer", tokenizer,
      "bytes, or in root a tokenizer.json, a SentencePiece .model, or a folder with one of these");
    v("packing", packing, "pack: documents share samples; pad: each has its own, padded",
      config::one_of({"pack", "pad"}));
    v("context", context, "tokens per sample", config::between(1, 1 << 20));
    v("train_share", train_share, "part of the documents to train on; the rest is for testing",
      {.min = 0, .max = 1, .exclusive = true});
  }
};

using Tokens = std::vector<std::int64_t>;

class Documents final : public Dataset {
 public:
  // Sample i has tokens [begins[i], begins[i] + lengths[i]], of which the last is a target only.
  struct Sample {
    std::int64_t begin, length;
  };
  Documents(Tokens tokens, std::vector<Sample> samples, std::int64_t context, std::int64_t end, bool padded)
      : tokens_(std::move(tokens)),
        samples_(std::move(samples)),
        spec_(language_samples(context, end + 1, padded)),
        context_(context),
        end_(end),
        padded_(padded) {}

  std::int64_t size() const override { return std::ssize(samples_); }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t length(std::int64_t index) const override {
    return padded_ ? samples_.at(static_cast<std::size_t>(index)).length : -1;
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " of ", size());
      const auto [begin, length] = samples_[static_cast<std::size_t>(index)];
      const auto* first = tokens_.data() + begin;
      input = std::fill_n(std::copy_n(first, length, input), context_ - length, end_);
      target = std::fill_n(std::copy_n(first + 1, length, target), context_ - length, kIgnored);
    }
  }

 private:
  Tokens tokens_;
  std::vector<Sample> samples_;
  SampleSpec spec_;
  std::int64_t context_, end_;
  bool padded_;
};

// What lies between separators and is not empty.
std::vector<std::string> documents_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> documents(1);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (line != separator) {
      documents.back() += (documents.back().empty() ? "" : "\n") + line;
    } else if (!documents.back().empty()) {
      documents.emplace_back();
    }
    begin = end + 1;
  }
  if (documents.back().empty()) documents.pop_back();
  return documents;
}

std::shared_ptr<const Dataset> split_of(const DocumentsConfig& config, const Tokenizer& tokenizer,
                                        std::span<const std::string> documents, const std::string& file) {
  const auto end = tokenizer.size(), context = config.context;
  const bool pad = config.packing == "pad";
  Tokens tokens;
  std::vector<Documents::Sample> samples;
  for (const auto& document : documents) {
    const auto begin = std::ssize(tokens);
    const auto its = tokenizer.encode(document);
    tokens.insert(tokens.end(), its.begin(), its.end());
    tokens.push_back(end);
    if (!pad) continue;
    const auto inputs = std::ssize(tokens) - 1;  // the end is a target only
    for (auto at = begin; at < inputs; at += context) samples.push_back({at, std::min(context, inputs - at)});
  }
  if (!pad) {
    for (std::int64_t at = 0; at + context < std::ssize(tokens); at += context) samples.push_back({at, context});
  }
  if (samples.empty()) {
    throw DataError(file + ": " + std::to_string(documents.size()) + " of its documents have " +
                    std::to_string(tokens.size()) + " tokens, which are less than a sample (dataset.context: " +
                    std::to_string(context) + "); use more text, a smaller context or packing: pad");
  }
  return std::make_shared<Documents>(std::move(tokens), std::move(samples), context, end, pad);
}

Splits load_documents(const DocumentsConfig& config) {
  const fs::path root = dataset_root(config.root, "documents");
  const auto file = find_files({.dataset = "documents",
                                .names = {config.file},
                                .how_to_get = "Any text of several documents will do; to use another one, set "
                                              "dataset.root and dataset.file."},
                               root)
                        .front();
  const std::shared_ptr<const Tokenizer> tokenizer =
      make_tokenizer(config.tokenizer == "bytes" ? "bytes" : (root / config.tokenizer).string());
  const auto documents = documents_of(read_file(file), config.separator);
  const auto border = static_cast<std::size_t>(static_cast<double>(documents.size()) * config.train_share);
  if (border == 0) {
    throw DataError(file.string() + ": has " + std::to_string(documents.size()) +
                    " documents, of which dataset.train_share leaves none to train on; set dataset.separator to the "
                    "line between them");
  }
  return {.train = split_of(config, *tokenizer, std::span(documents).first(border), file),
          .test = split_of(config, *tokenizer, std::span(documents).subspan(border), file),
          .tokenizer = tokenizer};
}

const bool registered = Datasets::global().add<DocumentsConfig>(
    "documents", "a text of several documents, packed or padded to sequences of tokens", load_documents);

}  // namespace
}  // namespace phalanx
