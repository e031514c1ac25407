// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/encoding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "datasets/tables/column_values.h"
#include "datasets/tables/finite_float.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using Missing = ColumnEncoding::Missing;

constexpr std::size_t kNamesInError = 20;

std::int64_t column_named(const TableSource& table, const std::string& name) {
  const auto& names = table.names();
  if (const auto found = std::ranges::find(names, name); found != names.end()) return found - names.begin();
  std::vector<std::string> first(names.begin(),
                                 names.begin() + std::min(std::ssize(names), std::ptrdiff_t{kNamesInError}));
  if (first.size() < names.size()) first.emplace_back("...");
  throw DataError(table.name() + ": has no column \"" + name + "\", which the training table has; its columns are " +
                  join(first, ", ") +
                  (table.has_names() ? "" : "; it has no header (dataset.header), and another number of columns"));
}

class Writer {
 public:
  Writer(const TableSource& table, const ColumnEncoding& encoding, std::vector<double> values, bool is_target,
         bool unknown_is_zeros)
      : table_(table),
        encoding_(encoding),
        column_(column_named(table, encoding.name)),
        values_(std::move(values)),
        is_target_(is_target),
        unknown_is_zeros_(unknown_is_zeros) {}

  // Appends the inputs that this column has for a row.
  void write_inputs(std::int64_t row, std::vector<float>& to) const {
    const double value = values_[static_cast<std::size_t>(row)];
    const double filled = filled_in(row);
    if (encoding_.category) {
      for (std::size_t i = 0; i < encoding_.categories.size(); ++i)
        to.push_back(filled == static_cast<double>(i) ? 1 : 0);
    } else {
      to.push_back(
          finite_float((filled - encoding_.mean) / encoding_.scale, [&] { return table_.where(row, column_); }));
    }
    if (encoding_.indicator) to.push_back(std::isnan(value) ? 1 : 0);
  }

  double target(std::int64_t row, std::int64_t classes) const {
    const double value = filled_in(row);
    const bool counted = classes > 0 && !encoding_.category;
    if (counted && (value != std::floor(value) || value < 0 || value >= static_cast<double>(classes))) {
      throw DataError(table_.where(row, column_) + ": class " + format_text("%g", value) + ", expected 0 to " +
                      std::to_string(classes - 1) + " (dataset.classes)");
    }
    return value;
  }

 private:
  double filled_in(std::int64_t row) const {
    const double value = values_[static_cast<std::size_t>(row)];
    if (std::isnan(value)) {
      if (encoding_.missing == Missing::kFill) return encoding_.fill;
      if (is_target_) {
        throw DataError(table_.where(row, column_) + ": the target is missing; to leave such rows out, set " +
                        "dataset.columns: {" + encoding_.name + ": {missing: drop}}");
      }
      throw DataError(table_.where(row, column_) +
                      ": the value is missing; set dataset.missing to what to do: drop (the row), mean, median, or a "
                      "value to use; or leave the column out (dataset.drop)");
    }
    if (value == kUnknown && encoding_.category && (is_target_ || !unknown_is_zeros_)) {
      const auto texts = categories_of(table_, column_, encoding_.type);
      const auto code = texts.codes[static_cast<std::size_t>(row)];
      throw DataError(table_.where(row, column_) + ": \"" + texts.values[static_cast<std::size_t>(code)] +
                      "\" is a category that no training row has" +
                      (is_target_ ? "" : "; dataset.unknown: zeros accepts it"));
    }
    return value;
  }

  const TableSource& table_;
  const ColumnEncoding& encoding_;
  std::int64_t column_;
  std::vector<double> values_;
  bool is_target_, unknown_is_zeros_;
};

}  // namespace

DenseSamples TableEncoding::encode(const TableSource& table, std::span<const std::int64_t> rows) const {
  std::vector<ColumnEncoding> all = inputs_;
  all.insert(all.end(), targets_.begin(), targets_.end());
  std::vector<std::vector<double>> values;
  for (const auto& column : all) values.push_back(values_of(table, column_named(table, column.name), column));
  const auto kept = kept_rows(all, values, {rows.begin(), rows.end()});
  if (kept.empty()) {
    throw DataError(table.name() + ": no row is left" +
                    (rows.empty() ? "" : ", since each of them has a missing value (dataset.missing: drop)"));
  }
  std::vector<Writer> writers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    writers.emplace_back(table, all[i], std::move(values[i]), i >= inputs_.size(), unknown_is_zeros_);
  }
  DenseSamples samples{.shape = {std::ssize(features())}, .width = std::ssize(targets_)};
  samples.values.reserve(kept.size() * static_cast<std::size_t>(samples.shape[0]));
  for (const auto row : kept) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) writers[i].write_inputs(row, samples.values);
    for (std::size_t i = inputs_.size(); i < all.size(); ++i) {
      const double target = writers[i].target(row, classes_);
      if (classes_ > 0) {
        samples.classes.push_back(static_cast<std::int64_t>(target));
      } else {
        samples.numbers.push_back(static_cast<float>(target));
      }
    }
  }
  return samples;
}

std::vector<std::string> TableEncoding::features() const {
  std::vector<std::string> names;
  for (const auto& column : inputs_) {
    if (column.category) {
      for (const auto& category : column.categories) names.push_back(column.name + "=" + category);
    } else {
      names.push_back(column.name);
    }
    if (column.indicator) names.push_back(column.name + " is missing");
  }
  return names;
}

}  // namespace phalanx
