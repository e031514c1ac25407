// SPDX-License-Identifier: Apache-2.0
// Fits a TableEncoding: chooses columns and computes their categories, fill values and statistics.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "datasets/tables/column_values.h"
#include "datasets/tables/encoding.h"
#include "datasets/tables/finite_float.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using Missing = ColumnEncoding::Missing;

bool number_in(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && is_finite_float(value);
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const auto half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

double mean_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// Returns the population standard deviation, or 1 if all numbers are equal up to rounding.
double deviation_of(const std::vector<double>& numbers, double mean) {
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
  constexpr double kRounding = 1e-12;
  return deviation > kRounding * std::max(std::abs(mean), 1e-300) ? deviation : 1;
}

// Returns the index that occurs most often, or the smallest one of several.
double most_frequent(const std::vector<double>& indices) {
  std::map<double, std::int64_t> counts;
  for (const double index : indices) ++counts[index];
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

}  // namespace

class EncodingFit {
 public:
  EncodingFit(const EncodingConfig& config, const TableSource& table, std::span<const std::int64_t> rows)
      : config_(config), table_(table), rows_(rows.begin(), rows.end()) {}

  TableEncoding run() {
    for (const auto& [name, column] : config_.columns) by_column_[required(name, "columns")] = &column;
    choose_columns();
    for (const auto column : inputs_) encoding_.inputs_.push_back(input_of(column));
    for (const auto column : targets_) encoding_.targets_.push_back(target_of(column));
    encoding_.unknown_is_zeros_ = config_.unknown == "zeros";
    fit_values();
    return std::move(encoding_);
  }

 private:
  std::int64_t required(const std::string& name, const char* key) const {
    const auto found = find_column(table_, name);
    if (found >= 0) return found;
    const auto near = nearest(name, table_.names());
    throw ConfigError(
        "dataset." + std::string(key) + ": \"" + name + "\" is not a column of " + table_.name() +
        (near.empty() ? "; its columns are " + join(table_.names(), ", ") : "; did you mean " + near + "?") +
        (table_.has_names() ? "" : "; it has no header (dataset.header)"));
  }

  std::vector<std::int64_t> all_required(const std::vector<std::string>& names, const char* key) const {
    std::vector<std::int64_t> columns;
    for (const auto& name : names) {
      const auto column = required(name, key);
      if (std::ranges::count(columns, column) > 0) {
        throw ConfigError("dataset." + std::string(key) + ": names the column \"" + name + "\" twice");
      }
      columns.push_back(column);
    }
    return columns;
  }

  void choose_columns() {
    const auto dropped = all_required(config_.drop, "drop");
    if (!config_.target.empty() && !config_.targets.empty()) {
      throw ConfigError("dataset.targets: takes the place of dataset.target; set only one of them");
    }
    if (!config_.targets.empty()) {
      targets_ = all_required(config_.targets, "targets");
    } else if (!config_.target.empty()) {
      targets_ = {required(config_.target, "target")};
    } else {
      auto last = std::ssize(table_.names()) - 1;
      while (last > 0 && (std::ranges::count(dropped, last) > 0 || last == table_.row_names())) --last;
      targets_ = {last};
    }
    inputs_ = all_required(config_.inputs, "inputs");
    if (inputs_.empty()) {
      for (std::int64_t i = 0; i < std::ssize(table_.names()); ++i) {
        if (std::ranges::count(dropped, i) + std::ranges::count(targets_, i) == 0 && i != table_.row_names()) {
          inputs_.push_back(i);
        }
      }
    }
    for (const auto column : inputs_) {
      if (std::ranges::count(targets_, column) == 0) continue;
      throw ConfigError("dataset.inputs: " + name_of(column) + " is also the target");
    }
    if (inputs_.empty()) {
      throw ConfigError(table_.name() + ": has the columns " + join(table_.names(), ", ") +
                        ", of which none is left for the inputs; if that is wrong, set dataset.separator");
    }
  }

  const std::string& name_of(std::int64_t column) const { return table_.names()[static_cast<std::size_t>(column)]; }

  std::string place(std::int64_t column) const { return table_.name() + ": column " + name_of(column); }

  // Returns "auto" for a column that the config does not name.
  std::string as(std::int64_t column) const {
    const auto found = by_column_.find(column);
    return found == by_column_.end() ? "auto" : found->second->as;
  }

  std::string missing_of(std::int64_t column) const {
    const auto found = by_column_.find(column);
    return found == by_column_.end() || found->second->missing.empty() ? config_.missing : found->second->missing;
  }

  // Returns the type and kind of the column, without any fitted values.
  ColumnEncoding read_as(std::int64_t column) const {
    ColumnEncoding encoding{.name = name_of(column)};
    const std::string wanted = as(column);
    if (wanted == "number") return encoding;
    if (wanted == "category") {
      encoding.category = true;
      encoding.type = type_of_categories(column);
      return encoding;
    }
    encoding.type = table_.type_of(column);
    encoding.category = encoding.type == ValueType::kText;
    if (encoding.type == ValueType::kDate) {
      throw DataError(table_.where(first_value(column), column) +
                      ": is a date, which has no meaning as a number; leave the column out (dataset.drop: [" +
                      name_of(column) +
                      "]), or put what matters into columns of numbers, such as days, months or weekdays");
    }
    return encoding;
  }

  // A column with numbers and other text has text categories.
  ValueType type_of_categories(std::int64_t column) const {
    try {
      return table_.type_of(column);
    } catch (const DataError&) {
      return ValueType::kText;
    }
  }

  std::int64_t first_value(std::int64_t column) const {
    const auto codes = table_.texts(column).codes;
    return std::ranges::find_if(codes, [](std::int64_t code) { return code >= 0; }) - codes.begin();
  }

  ColumnEncoding input_of(std::int64_t column) const {
    auto encoding = read_as(column);
    const auto missing = missing_of(column);
    encoding.missing = missing == "error" ? Missing::kError : missing == "drop" ? Missing::kDrop : Missing::kFill;
    if (encoding.category) find_categories(column, encoding, config_.max_categories);
    return encoding;
  }

  ColumnEncoding target_of(std::int64_t column) {
    auto encoding = read_as(column);
    if (missing_of(column) == "drop") encoding.missing = Missing::kDrop;  // targets are never filled
    const bool numbers = encoding.type == ValueType::kNumber && !encoding.category;
    const bool classes =
        config_.task == "classification" ||
        (config_.task == "auto" && (config_.classes > 0 || encoding.type != ValueType::kNumber || encoding.category));
    if (!classes) {
      if (encoding.category) {
        throw ConfigError(place(column) +
                          ": has text, which cannot be a target of regression; set dataset.task: classification");
      }
      if (config_.classes > 0) throw ConfigError("dataset.classes: regression has no classes; leave this key out");
      return encoding;
    }
    if (targets_.size() > 1) {
      throw ConfigError(place(column) + ": has classes; several dataset.targets must be numbers");
    }
    encoding_.classes_ = config_.classes;
    if (numbers && config_.classes > 0) return encoding;
    encoding.category = true;
    find_categories(column, encoding, 1'000'000);
    const auto found = std::ssize(encoding.categories);
    if (config_.classes > 0 && config_.classes != found) {
      throw ConfigError("dataset.classes: is " + std::to_string(config_.classes) + ", but " + place(column) + " has " +
                        std::to_string(found) + " classes in the training rows; leave this key out");
    }
    if (found < 2) throw DataError(place(column) + ": has only one class in the training rows");
    encoding_.classes_ = found;
    return encoding;
  }

  void find_categories(std::int64_t column, ColumnEncoding& encoding, std::int64_t most) const {
    const auto texts = categories_of(table_, column, encoding.type);
    std::set<std::string> found;
    for (const auto row : rows_) {
      const auto code = texts.codes[static_cast<std::size_t>(row)];
      if (code >= 0) found.insert(texts.values[static_cast<std::size_t>(code)]);
    }
    encoding.categories.assign(found.begin(), found.end());
    if (encoding.type == ValueType::kNumber) {
      std::ranges::sort(encoding.categories, {},
                        [](const std::string& text) { return std::strtod(text.c_str(), nullptr); });
    }
    if (std::ssize(encoding.categories) <= most) return;
    throw DataError(place(column) + ": has " + std::to_string(encoding.categories.size()) +
                    " different texts, more than dataset.max_categories: " + std::to_string(most) +
                    "; leave the column out (dataset.drop: [" + encoding.name + "]) or raise the limit");
  }

  // Drops rows with missing values and computes fill values and statistics from the other rows.
  void fit_values() {
    auto all = encoding_.inputs_;
    all.insert(all.end(), encoding_.targets_.begin(), encoding_.targets_.end());
    auto columns = inputs_;
    columns.insert(columns.end(), targets_.begin(), targets_.end());
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < all.size(); ++i) values.push_back(values_of(table_, columns[i], all[i]));
    rows_ = kept_rows(all, values, rows_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) fit_input(inputs_[i], values[i], encoding_.inputs_[i]);
  }

  void fit_input(std::int64_t column, const std::vector<double>& values, ColumnEncoding& encoding) const {
    std::vector<double> known;
    for (const auto row : rows_) {
      if (const double value = values[static_cast<std::size_t>(row)]; !std::isnan(value)) known.push_back(value);
    }
    const auto missing = std::ssize(rows_) - std::ssize(known);
    encoding.indicator = config_.missing_indicator && missing > 0;
    if (encoding.missing == Missing::kFill) fill(column, known, missing > 0, encoding);
    if (!config_.standardize || encoding.category || encoding.type != ValueType::kNumber || rows_.empty()) return;
    if (encoding.missing == Missing::kFill) known.resize(rows_.size(), encoding.fill);
    if (known.empty()) return;
    encoding.mean = mean_of(known);
    encoding.scale = deviation_of(known, encoding.mean);
  }

  // If `needed`, some training row lacks a value.
  void fill(std::int64_t column, const std::vector<double>& known, bool needed, ColumnEncoding& encoding) const {
    const auto rule = missing_of(column);
    if (rule == "mean" || rule == "median") {
      if (known.empty()) {
        throw DataError(place(column) +
                        ": has no value in the training rows from which dataset.missing could take the " + rule +
                        "; leave the column out (dataset.drop: [" + encoding.name + "])");
      }
      encoding.fill = encoding.category ? most_frequent(known) : rule == "mean" ? mean_of(known) : median_of(known);
    } else if (encoding.category) {
      const auto at = std::ranges::find(encoding.categories, rule);
      encoding.fill = static_cast<double>(at - encoding.categories.begin());
      if (at != encoding.categories.end()) return;
      if (needed) {
        encoding.categories.push_back(rule);
      } else {
        encoding.missing = Missing::kError;  // a category without training rows could not be learnt
      }
    } else if (!number_in(rule, encoding.fill)) {
      throw ConfigError("dataset.missing: \"" + rule +
                        "\" is neither error, drop, mean nor median, nor a number for the " + "column " +
                        encoding.name + " of numbers");
    }
  }

  const EncodingConfig& config_;
  const TableSource& table_;
  std::vector<std::int64_t> rows_;
  std::map<std::int64_t, const ColumnConfig*> by_column_;
  std::vector<std::int64_t> inputs_, targets_;
  TableEncoding encoding_;
};

TableEncoding TableEncoding::fit(const EncodingConfig& config, const TableSource& table,
                                 std::span<const std::int64_t> rows) {
  return EncodingFit(config, table, rows).run();
}

}  // namespace phalanx
