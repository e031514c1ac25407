// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/tables/delimited_table.h"
#include "datasets/testing/idx_files.h"

namespace phalanx::testing {

/// Returns a table of this text, read from a file "FOLDER/a.csv".
inline std::shared_ptr<const TableSource> table_of(const std::string& text, const TableSource* like = nullptr) {
  const auto path = fresh_folder("testing_table") / "a.csv";
  std::ofstream(path, std::ios::binary) << text;
  return read_delimited_table(path.string(), {}, like);
}

/// Returns the row numbers of the table: 0, 1, 2, ...
inline std::vector<std::int64_t> rows_of(const TableSource& table) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace phalanx::testing
