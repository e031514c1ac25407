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

namespace phalanx {

/// The fields of a config that divide the rows of one table among the splits.
struct SplitConfig {
  std::string column{};
  double test = 0.2;
  double validation = 0;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("column", column, "column that has train, validation or test in each row; empty: rows are drawn");
    v("test", test, "share of the rows to test on", config::between(0, 1));
    v("validation", validation, "share of the rows to validate on", config::between(0, 1));
    v("seed", seed, "random seed of which rows these are");
  }
};

using TablePtr = std::shared_ptr<const TableSource>;

/// The samples of three tables, encoded as the training table is. `validation` may be null. Splits::fitted has the
/// encoding. Throws as TableEncoding.
Splits splits_of_tables(const EncodingConfig& config, const TablePtr& train, const TablePtr& validation,
                        const TablePtr& test);

/// The samples of one table. The rows of each split keep their order. Throws as TableEncoding, ConfigError for shares
/// that leave a split without a row, and DataError for another text in split.column.
Splits splits_of_table(const EncodingConfig& config, const SplitConfig& split, const TablePtr& table);

}  // namespace phalanx
