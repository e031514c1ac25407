// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/table_splits.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "datasets/shuffle.h"
#include "datasets/tables/dense_samples.h"
#include "datasets/tables/encoding.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using Rows = std::vector<std::int64_t>;

struct RowsOfSplits {
  Rows train, validation, test;
};

Rows all_rows(const TableSource& table) {
  Rows rows(static_cast<std::size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TableEncoding encoding_of(const EncodingConfig& config, const TableSource& train, const Rows& rows) {
  if (config.encoding.empty()) return TableEncoding::fit(config, train, rows);
  return TableEncoding::from_json(read_file(config.encoding), config.encoding);
}

std::shared_ptr<const Dataset> samples(const TableEncoding& encoding, const TableSource& table, const Rows& rows) {
  return make_dense(encoding.encode(table, rows), encoding.classes());
}

RowsOfSplits rows_by_column(const TableSource& table, const std::string& name) {
  const auto column = find_column(table, name);
  if (column < 0) {
    throw ConfigError("dataset.split.column: \"" + name + "\" is not a column of " + table.name());
  }
  const auto texts = table.texts(column);
  RowsOfSplits rows;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const auto code = texts.codes[static_cast<std::size_t>(row)];
    const std::string text = code < 0 ? "" : texts.values[static_cast<std::size_t>(code)];
    if (text == "train") {
      rows.train.push_back(row);
    } else if (text == "validation") {
      rows.validation.push_back(row);
    } else if (text == "test") {
      rows.test.push_back(row);
    } else {
      throw DataError(table.where(row, column) + ": \"" + text + "\" is neither train, validation nor test");
    }
  }
  if (rows.train.empty() || rows.test.empty()) {
    throw DataError(table.name() + ": column " + name + ": no row is for " + (rows.train.empty() ? "train" : "test"));
  }
  return rows;
}

RowsOfSplits rows_by_share(const TableSource& table, const SplitConfig& split) {
  auto drawn = all_rows(table);
  shuffle(drawn, RandomStream(static_cast<std::uint64_t>(split.seed)));
  const auto count = [&](double share) {
    return static_cast<std::size_t>(std::llround(share * static_cast<double>(drawn.size())));
  };
  const auto tests = count(split.test), validations = count(split.validation);
  if (tests == 0 || tests + validations >= drawn.size() || (validations == 0 && split.validation > 0)) {
    throw ConfigError("dataset.split: the " + std::to_string(drawn.size()) + " rows of " + table.name() +
                      " leave a split without rows; change the shares test and validation");
  }
  const auto sorted = [&](std::size_t begin, std::size_t end) {
    Rows rows(drawn.begin() + static_cast<std::ptrdiff_t>(begin), drawn.begin() + static_cast<std::ptrdiff_t>(end));
    std::ranges::sort(rows);
    return rows;
  };
  return {.train = sorted(tests + validations, drawn.size()),
          .validation = sorted(tests, tests + validations),
          .test = sorted(0, tests)};
}

}  // namespace

Splits splits_of_tables(const EncodingConfig& config, const TablePtr& train, const TablePtr& validation,
                        const TablePtr& test) {
  const auto rows = all_rows(*train);
  const auto encoding = encoding_of(config, *train, rows);
  Splits splits{.train = samples(encoding, *train, rows), .test = samples(encoding, *test, all_rows(*test))};
  if (validation) splits.validation = samples(encoding, *validation, all_rows(*validation));
  splits.fitted = encoding.to_json();
  return splits;
}

Splits splits_of_table(const EncodingConfig& config, const SplitConfig& split, const TablePtr& table) {
  const auto rows = split.column.empty() ? rows_by_share(*table, split) : rows_by_column(*table, split.column);
  EncodingConfig others = config;
  const bool named = std::ranges::count(config.drop, split.column) > 0;
  if (!split.column.empty() && config.inputs.empty() && !named) others.drop.push_back(split.column);
  const auto encoding = encoding_of(others, *table, rows.train);
  Splits splits{.train = samples(encoding, *table, rows.train), .test = samples(encoding, *table, rows.test)};
  if (!rows.validation.empty()) splits.validation = samples(encoding, *table, rows.validation);
  splits.fitted = encoding.to_json();
  return splits;
}

}  // namespace phalanx
