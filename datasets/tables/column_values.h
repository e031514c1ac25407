// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/tables/encoding.h"
#include "datasets/tables/table_source.h"

namespace phalanx {

/// Returns the values of a column as categories: numbers and booleans in one spelling, "1" for 1.0 and "true" for TRUE.
TextValues categories_of(const TableSource& table, std::int64_t column, ValueType type);

/// Returns the value of a column in each row: a number or the index of a category in `encoding.categories`, NaN where
/// the value is missing, kUnknown where it is another category. Values are neither filled nor standardized.
std::vector<double> values_of(const TableSource& table, std::int64_t column, const ColumnEncoding& encoding);

inline constexpr double kUnknown = -1;  // no index

/// Returns which of the rows have no missing value in a column whose rows are then dropped. `columns` and `values` go
/// together; `values` have all rows of the table.
std::vector<std::int64_t> kept_rows(const std::vector<ColumnEncoding>& columns,
                                    const std::vector<std::vector<double>>& values,
                                    const std::vector<std::int64_t>& rows);

}  // namespace phalanx
