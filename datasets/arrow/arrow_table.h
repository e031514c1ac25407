// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "datasets/tables/table_source.h"

namespace phalanx {

/// Returns the rows of Parquet or Arrow files as one table. Columns are matched by name between files. Nulls are
/// missing values, and so are NaN, as in pandas. Numbers, decimals, booleans, text and dictionaries of text (pandas
/// calls them categories) are read; the index that pandas writes holds the names of rows. A column is read when it is
/// asked for, one group of rows at a time. Throws DataError, which names the file, for a file that is no table;
/// type_of() throws it for a column of another type, and for a column whose type differs between files.
std::shared_ptr<const TableSource> read_arrow_table(const std::vector<std::filesystem::path>& files);

}  // namespace phalanx
