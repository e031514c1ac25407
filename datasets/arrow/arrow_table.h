// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "datasets/tables/table_source.h"

namespace phalanx {

/// Returns the rows of Parquet or Arrow files as one table. Columns are matched by name between files. Null and NaN are
/// missing values, as in pandas. The table can have numbers, decimals, booleans, text and dictionaries of text (pandas
/// calls them categories). The index that pandas writes becomes the row names.
///
/// A column is read on demand, one row group at a time. Throws DataError, which names the file, for a file that is not
/// a table. type_of() throws it for a column of another type and for a column whose type differs between files.
std::shared_ptr<const TableSource> read_arrow_table(const std::vector<std::filesystem::path>& files);

}  // namespace phalanx
