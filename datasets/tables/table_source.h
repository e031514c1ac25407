// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// The type of the values of a column.
enum class ValueType { kNumber, kBoolean, kText, kDate };

/// Returns "number", "boolean", "text" or "date".
std::string to_string(ValueType type);

/// A text column, in which each distinct text is stored once.
struct TextValues {
  std::vector<std::int64_t> codes;  // index into `values` for each row; -1: missing
  std::vector<std::string> values;  // in order of first occurrence
};

/// A table with named, typed columns, independent of the file format. Thread-safe.
class TableSource {
 public:
  virtual ~TableSource() = default;

  /// Returns the distinct names of the columns. A table without a header has the names "0", "1", "2".
  virtual const std::vector<std::string>& names() const = 0;

  /// Returns true if the file names its columns, so that names() are not numbers.
  virtual bool has_names() const = 0;

  /// Returns the unnamed column with the row names, as R writes it, or -1 if the table has no such column.
  virtual std::int64_t row_names() const { return -1; }

  virtual std::int64_t rows() const = 0;

  /// Returns the common type of all present values of a column, or kNumber if all are missing. Throws DataError, which
  /// names a row, if a column has both numbers and other text.
  virtual ValueType type_of(std::int64_t column) const = 0;

  /// Returns the values of a column of numbers, or of booleans as 0 and 1. Missing values are NaN; all others are
  /// finite as float32. Throws DataError, with the place, for a value that is not.
  virtual std::vector<double> numbers(std::int64_t column) const = 0;

  /// Returns the values of any column as text, spelled as in the file.
  virtual TextValues texts(std::int64_t column) const = 0;

  /// Returns the place of a value for error messages: "train.csv: line 12, column age".
  virtual std::string where(std::int64_t row, std::int64_t column) const = 0;

  /// Returns the name of the file for error messages.
  virtual const std::string& name() const = 0;
};

/// Returns the column with this name in a config or, if no column has the name, the column with this number from 0.
/// Returns -1 if neither exists.
std::int64_t find_column(const TableSource& table, const std::string& name);

/// Returns true if the text is a date or a time: "2024-01-31", "1/31/2024", "31.1.2024 12:00", "Jan 1 2000".
bool is_date(const std::string& text);

}  // namespace phalanx
