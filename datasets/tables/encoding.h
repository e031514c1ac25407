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

/// Describes the inputs or the target that one column becomes.
struct ColumnEncoding {
  std::string name;
  ValueType type = ValueType::kNumber;    // of the values in the training table
  bool category = false;                  // otherwise a number
  std::vector<std::string> categories{};  // sorted; numbers by their values
  enum class Missing { kError, kDrop, kFill } missing = Missing::kError;
  double fill = 0;             // with kFill; of a category, its index
  bool indicator = false;      // one more input: whether the value is missing
  double mean = 0, scale = 1;  // a number x becomes (x - mean) / scale
};

/// Turns rows of a table into samples. It is fitted to training rows once and then encodes the rows of all splits, so
/// that a category has the same place in all of them, and no statistic of test rows is used. Columns are found by their
/// names. Immutable.
///
///   input          [k] float32: for each input column, in their order, a number or, for categories, one input for each
///                  of them, of which one is 1; then, if the column has one, its indicator
///   target         a class, int64, or [m] float32, the target columns
class TableEncoding {
 public:
  /// Fits to these rows of a table. Throws ConfigError for a config that does not suit the table and DataError, with
  /// the place, for values that do not suit the config.
  static TableEncoding fit(const EncodingConfig& config, const TableSource& table, std::span<const std::int64_t> rows);

  /// Reads what to_json() wrote. `path` names it in errors. Throws DataError.
  static TableEncoding from_json(const std::string& text, const std::string& path);

  /// Returns a JSON document that has everything that was fitted.
  std::string to_json() const;

  /// Encodes rows of a table, without those that are dropped because a value is missing. Throws DataError with the
  /// place for a column that the table lacks, a value of another type, and a category that is unknown.
  DenseSamples encode(const TableSource& table, std::span<const std::int64_t> rows) const;

  /// Returns the number of classes of the target; 0: targets are numbers.
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
