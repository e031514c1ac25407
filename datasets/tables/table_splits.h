// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/tables/encoding_config.h"
#include "datasets/tables/table_source.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {

/// The config fields that divide the rows of one table into splits.
struct SplitConfig {
  std::string column{};
  double test = 0.2;
  double validation = 0;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("column", column, "column that has train, validation or test in each row; empty: rows are drawn at random");
    v("test", test, "share of the rows to test on", config::between(0, 1));
    v("validation", validation, "share of the rows to validate on", config::between(0, 1));
    v("seed", seed, "random seed that chooses these rows");
  }
};

/// Throws ConfigError if a config whose field `file` names the rows of all splits also names files of single splits.
template <class Config>
void refuse_files_of_splits(const Config& config) {
  const Config usual;
  if (config.train == usual.train && config.test == usual.test && config.validation.empty()) return;
  throw ConfigError(
      "dataset.file: has the rows of all splits; set either this key or dataset.train, validation and test");
}

using TablePtr = std::shared_ptr<const TableSource>;

/// Returns the samples of three tables with an encoding fitted to `train`, which is stored in Splits::fitted.
/// `validation` may be null. Throws the errors of TableEncoding.
Splits splits_of_tables(const EncodingConfig& config, const TablePtr& train, const TablePtr& validation,
                        const TablePtr& test);

/// Returns the samples of one table, divided into splits. The rows of each split keep their order. Throws the errors of
/// TableEncoding, ConfigError for shares that leave a split without rows, and DataError for an unknown split name in
/// split.column.
Splits splits_of_table(const EncodingConfig& config, const SplitConfig& split, const TablePtr& table);

}  // namespace phalanx
