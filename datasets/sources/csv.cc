// SPDX-License-Identifier: Apache-2.0
// Tables of delimited text (CSV, TSV and similar formats) with typed and named columns. datasets/tables/encoding.h
// describes the samples.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/tables/delimited_table.h"
#include "datasets/tables/encoding_config.h"
#include "datasets/tables/table_splits.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct CsvConfig : DelimitedFormat, EncodingConfig {
  std::string root;
  std::string train = "train.csv";
  std::string validation;
  std::string test = "test.csv";
  std::string file;
  SplitConfig split;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/csv, else data/csv");
    v("train", train, "file to train on; .gz files are decompressed");
    v("validation", validation, "file to validate on; empty: none");
    v("test", test, "file to test on");
    v("file", file, "one file with the rows of all splits, in place of train, validation and test");
    v("split", split, "which rows of this file are for which split");
    DelimitedFormat::visit(v);
    EncodingConfig::visit(v);
  }
};

std::vector<std::filesystem::path> find(const CsvConfig& config, std::vector<std::string> names) {
  return find_files(
      {.dataset = "csv",
       .names = std::move(names),
       .how_to_get = "Any tables of text will do: set dataset.root to their folder, and dataset.train and "
                     "dataset.test to their names, or dataset.file to the name of one file for both."},
      dataset_root(config.root, "csv"));
}

Splits load_csv(const CsvConfig& config) {
  if (config.thousands == config.decimal) {
    throw ConfigError("dataset.thousands: is the same character as dataset.decimal");
  }
  if (!config.file.empty()) {
    refuse_files_of_splits(config);
    return splits_of_table(config, config.split, read_delimited_table(find(config, {config.file})[0], config));
  }
  std::vector<std::string> names{config.train, config.test};
  if (!config.validation.empty()) names.push_back(config.validation);
  const auto paths = find(config, std::move(names));
  const auto train = read_delimited_table(paths[0], config);
  const auto test = read_delimited_table(paths[1], config, train.get());
  const auto validation = paths.size() > 2 ? read_delimited_table(paths[2], config, train.get()) : nullptr;
  return splits_of_tables(config, train, validation, test);
}

const bool csv_registered = Datasets::global().add<CsvConfig>(
    "csv", "tables of delimited text, with columns of numbers and categories", load_csv);

}  // namespace
}  // namespace phalanx
