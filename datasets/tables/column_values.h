// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/tables/encoding.h"
#include "datasets/tables/table_source.h"

namespace phalanx {

/// Returns the values of a column as categories. Numbers and booleans have a canonical spelling: "1" for 1.0 and "true"
/// for TRUE.
TextValues categories_of(const TableSource& table, std::int64_t column, ValueType type);

/// Returns one value per row: a number, or the index of a category in `encoding.categories`. It is NaN for a missing
/// value and kUnknown for a category that is not in the list. Missing values are not filled and numbers are not
/// standardized.
std::vector<double> values_of(const TableSource& table, std::int64_t column, const ColumnEncoding& encoding);

inline constexpr double kUnknown = -1;  // not a valid index

/// Returns `rows` without the rows that lack a value in a column with the rule kDrop. `values[i]` has the values of
/// `columns[i]` for every row of the table.
std::vector<std::int64_t> kept_rows(const std::vector<ColumnEncoding>& columns,
                                    const std::vector<std::vector<double>>& values,
                                    const std::vector<std::int64_t>& rows);

}  // namespace phalanx
