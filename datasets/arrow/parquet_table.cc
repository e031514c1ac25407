// SPDX-License-Identifier: Apache-2.0
// Tables in Parquet and Arrow files, with typed and named columns. datasets/tables/encoding.h describes the samples.
#include <memory>
#include <string>
#include <vector>

#include "datasets/arrow/arrow_table.h"
#include "datasets/arrow/table_files.h"
#include "datasets/dataset.h"
#include "datasets/tables/encoding_config.h"
#include "datasets/tables/table_splits.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

constexpr const char* kName = "parquet_table";

struct ParquetTableConfig : TableFiles, EncodingConfig {
  std::vector<std::string> file;
  SplitConfig split;

  template <class V>
  void visit(V& v) {
    TableFiles::visit(v);
    v("file", file, "files with the rows of all splits, in place of train, validation and test");
    v("split", split, "which rows of these files are for which split");
    EncodingConfig::visit(v);
  }
};

Splits load_parquet_table(const ParquetTableConfig& config) {
  const auto read = [&](const char* key, const std::vector<std::string>& patterns) {
    return read_arrow_table(config.find(kName, key, patterns));
  };
  if (config.file.empty()) {
    const auto train = read("train", config.train), test = read("test", config.test);
    return splits_of_tables(config, train, config.validation.empty() ? nullptr : read("validation", config.validation),
                            test);
  }
  refuse_files_of_splits(config);
  return splits_of_table(config, config.split, read("file", config.file));
}

const bool parquet_table_registered = Datasets::global().add<ParquetTableConfig>(
    kName, "tables in Parquet or Arrow files, with columns of numbers and categories", load_parquet_table);

}  // namespace
}  // namespace phalanx
