// SPDX-License-Identifier: Apache-2.0
// Documents in a text column of Parquet and Arrow files, one per row, as sequences of tokens
// (datasets/text/document_sequences.h).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/arrow/columns.h"
#include "datasets/arrow/groups.h"
#include "datasets/arrow/table_files.h"
#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/text/document_sequences.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct ParquetTextConfig : TableFiles, SequencesConfig {
  std::string column = "text";

  template <class V>
  void visit(V& v) {
    TableFiles::visit(v);
    v("column", column, "column of text");
    SequencesConfig::visit(v);
  }
};

// Returns the documents row by row, with one row group in memory.
class Rows {
 public:
  Rows(const std::vector<std::filesystem::path>& files, std::string column)
      : groups_(files), column_(std::move(column)) {}

  std::optional<std::string_view> operator()() {
    while (!texts_ || row_ == texts_->rows()) {
      if (group_ == groups_.size()) return std::nullopt;
      texts_.emplace(groups_.read(group_, column_), groups_.name(group_, column_));
      ++group_;
      row_ = 0;
    }
    return texts_->text(row_++);
  }

 private:
  RowGroups groups_;
  std::string column_;
  std::size_t group_ = 0;  // the next group to read
  std::optional<TextColumn> texts_;
  std::int64_t row_ = 0;  // the next row of texts_
};

Splits load_parquet_text(const ParquetTextConfig& config) {
  const auto tokenizer = config.make_tokenizer(dataset_root(config.root, "parquet_text"));
  auto splits = config.splits("parquet_text", [&](const auto& files, bool) {
    Rows rows(files, config.column);
    return document_sequences(config, *tokenizer, std::ref(rows), files.front().string());
  });
  splits.tokenizer = tokenizer;
  return splits;
}

const bool parquet_text_registered = Datasets::global().add<ParquetTextConfig>(
    "parquet_text", "documents in Parquet or Arrow files, packed or padded to sequences of tokens", load_parquet_text);

}  // namespace
}  // namespace phalanx
