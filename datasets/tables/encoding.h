// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datasets/tables/dense_samples.h"
#include "datasets/tables/encoding_config.h"
#include "datasets/tables/table_source.h"

namespace phalanx {

/// Describes the inputs or the target that are made from one column.
struct ColumnEncoding {
  std::string name;
  ValueType type = ValueType::kNumber;    // type of the values in the training table
  bool category = false;                  // false: a number
  std::vector<std::string> categories{};  // sorted; numbers by value
  enum class Missing { kError, kDrop, kFill } missing = Missing::kError;
  double fill = 0;             // value for kFill; the index of a category for categories
  bool indicator = false;      // adds an input that is 1 if the value is missing and 0 otherwise
  double mean = 0, scale = 1;  // a number x becomes (x - mean) / scale
};

/// Turns rows of a table into samples. It is fitted once, to training rows, and then encodes the rows of all splits. So
/// a category has the same index in every split, and statistics of test rows are never used. Columns are found by name.
/// Immutable.
///
///   input          [k] float32: for each input column, in order, a number or a one-hot vector of its categories,
///                  followed by its indicator if it has one
///   target         a class, int64, or [m] float32, the target columns
class TableEncoding {
 public:
  /// Fits to these rows of a table. Throws ConfigError for a config that does not match the table and DataError, with
  /// the place, for values that do not match the config.
  static TableEncoding fit(const EncodingConfig& config, const TableSource& table, std::span<const std::int64_t> rows);

  /// Reads the output of to_json(). `path` names it in errors. Throws DataError.
  static TableEncoding from_json(const std::string& text, const std::string& path);

  /// Returns a JSON document with everything that was fitted.
  std::string to_json() const;

  /// Encodes rows of a table, except rows that are dropped because of a missing value. Throws DataError, with the
  /// place, for a column that the table lacks, a value of another type, and an unknown category.
  DenseSamples encode(const TableSource& table, std::span<const std::int64_t> rows) const;

  /// Returns the number of classes of the target, or 0 if targets are numbers.
  std::int64_t classes() const { return classes_; }

  /// Returns the name of each input: "age", "sex=female", "age is missing".
  std::vector<std::string> features() const;

 private:
  friend class EncodingFit;

  std::vector<ColumnEncoding> inputs_, targets_;
  bool unknown_is_zeros_ = false;
  std::int64_t classes_ = 0;
};

}  // namespace phalanx
