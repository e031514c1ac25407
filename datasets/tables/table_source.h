// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// The values of a column.
enum class ValueType { kNumber, kBoolean, kText, kDate };

/// "number", "boolean", "text" or "date".
std::string to_string(ValueType type);

/// A column of text, each different one of which is kept once.
struct TextValues {
  std::vector<std::int64_t> codes;  // of each row, into values; -1: missing
  std::vector<std::string> values;  // in the order in which they first occur
};

/// A table with named, typed columns, whatever file it comes from. Thread-safe.
class TableSource {
 public:
  virtual ~TableSource() = default;

  /// The names of the columns, all different. A table without a header has the names "0", "1", "2".
  virtual const std::vector<std::string>& names() const = 0;

  /// Returns true if the file names its columns, so that names() are not numbers.
  virtual bool has_names() const = 0;

  /// The column that has no name but those of the rows, as R writes it; -1: none.
  virtual std::int64_t row_names() const { return -1; }

  virtual std::int64_t rows() const = 0;

  /// Returns the type that all values of a column that are not missing have, and kNumber if all are missing. Throws
  /// DataError that names a row if a column has numbers and other text.
  virtual ValueType type_of(std::int64_t column) const = 0;

  /// Returns the values of a column of numbers, or of booleans as 0 and 1; missing ones are NaN. All others are finite
  /// as float32. Throws DataError with the place for a value that is not.
  virtual std::vector<double> numbers(std::int64_t column) const = 0;

  /// Returns the values of any column as text, as the file has them.
  virtual TextValues texts(std::int64_t column) const = 0;

  /// The place of a value, for errors: "train.csv: line 12, column age".
  virtual std::string where(std::int64_t row, std::int64_t column) const = 0;

  /// The file, for errors.
  virtual const std::string& name() const = 0;
};

/// Returns the column that a config means by a name, or by a number from 0 where no column has that name; -1: none.
std::int64_t find_column(const TableSource& table, const std::string& name);

/// Returns true if the text is a date or a time: "2024-01-31", "1/31/2024", "31.1.2024 12:00", "Jan 1 2000".
bool is_date(const std::string& text);

}  // namespace phalanx
