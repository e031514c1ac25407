// SPDX-License-Identifier: Apache-2.0
// A text file of documents, as sequences of tokens (datasets/text/document_sequences.h). Lines that equal `separator`,
// empty lines by default, divide the documents. The first documents are for training, the others for testing.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/text/document_sequences.h"
#include "datasets/text/tokenizer.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct DocumentsConfig : SequencesConfig {
  std::string root;
  std::string file = "documents.txt";
  std::string separator;
  double train_share = 0.9;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/documents, else data/documents");
    v("file", file, "text file");
    v("separator", separator, "line between two documents");
    SequencesConfig::visit(v);
    v("train_share", train_share, "share of the documents to train on; the rest is for testing",
      {.min = 0, .max = 1, .exclusive = true});
  }
};

// Returns the non-empty documents between separators.
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
  auto next = documents.begin();
  const auto document = [&]() -> std::optional<std::string_view> {
    if (next == documents.end()) return std::nullopt;
    return *next++;
  };
  return document_sequences(config, tokenizer, document, file);
}

Splits load_documents(const DocumentsConfig& config) {
  const fs::path root = dataset_root(config.root, "documents");
  const auto file = find_files({.dataset = "documents",
                                .names = {config.file},
                                .how_to_get = "Any text of several documents will do; to use another one, set "
                                              "dataset.root and dataset.file."},
                               root)
                        .front();
  const auto tokenizer = config.make_tokenizer(root);
  const auto documents = documents_of(read_file(file), config.separator);
  const auto border = static_cast<std::size_t>(static_cast<double>(documents.size()) * config.train_share);
  if (border == 0) {
    throw DataError(file.string() + ": has " + std::to_string(documents.size()) +
                    " documents, and dataset.train_share leaves none of them to train on; set dataset.separator to the "
                    "line between them");
  }
  return {.train = split_of(config, *tokenizer, std::span(documents).first(border), file),
          .test = split_of(config, *tokenizer, std::span(documents).subspan(border), file),
          .tokenizer = tokenizer};
}

const bool documents_registered = Datasets::global().add<DocumentsConfig>(
    "documents", "a text of several documents, packed or padded to sequences of tokens", load_documents);

}  // namespace
}  // namespace phalanx
