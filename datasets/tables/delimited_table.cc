// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/delimited_table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datasets/tables/delimited_text.h"
#include "datasets/tables/finite_float.h"
#include "datasets/tables/text_file.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kRowsToFindHeader = 1000;

std::optional<bool> boolean_of(std::string_view text) {
  const auto is = [&](std::string_view word) {
    return std::ranges::equal(text, word, [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
  };
  if (is("true")) return true;
  if (is("false")) return false;
  return std::nullopt;
}

struct NumberFormat {
  char decimal;
  char thousands;  // 0: digits are not grouped
};

// Returns the number without the characters between its groups of digits, or nullopt if a group does not have three
// digits.
std::optional<std::string> without_groups(std::string_view text, NumberFormat format) {
  const auto begin = text.find_first_not_of("+-");
  const auto end = std::min(text.find_first_not_of(std::string("0123456789") + format.thousands, begin), text.size());
  std::string digits(text.substr(0, begin));
  std::size_t group = 0;
  bool first = true;
  for (std::size_t i = begin; i < end; ++i) {
    if (text[i] != format.thousands) {
      digits += text[i];
      ++group;
      continue;
    }
    if (first ? group < 1 || group > 3 : group != 3) return std::nullopt;
    group = 0;
    first = false;
  }
  if (group != 3) return std::nullopt;
  const auto rest = text.substr(end);
  if (rest.find(format.thousands) != std::string_view::npos) return std::nullopt;
  return digits.append(rest);
}

// Returns the number, which may be infinite or NaN, or nullopt if the text is not a number.
std::optional<double> number_of(std::string_view text, NumberFormat format) {
  std::string own;
  if (format.thousands != 0 && text.find(format.thousands) != std::string_view::npos) {
    auto digits = without_groups(text, format);
    if (!digits) return std::nullopt;
    own = *std::move(digits);
    text = own;
  }
  if (format.decimal != '.') {
    own = std::string(text);
    if (own.find('.') != std::string::npos) return std::nullopt;
    std::ranges::replace(own, format.decimal, '.');
    text = own;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+')) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc()) return value;
  // The C library rounds numbers out of range to 0 or to an infinity.
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(text).c_str(), nullptr);
  return std::nullopt;
}

class DelimitedTable final : public TableSource {
 public:
  DelimitedTable(const std::string& path, const DelimitedFormat& format, const TableSource* like)
      : path_(path),
        missing_(format.missing_values.begin(), format.missing_values.end()),
        number_format_{format.decimal[0], format.thousands.empty() ? '\0' : format.thousands[0]},
        text_(read_text_file(path),
              {.separator = format.separator,
               .quote = format.quote,
               .comment = format.comment,
               .skip_lines = format.skip_lines,
               .decimal = number_format_.decimal},
              path) {
    if (text_.rows() == 0) refuse("has no rows");
    columns_ = usual_fields();
    const bool short_first = text_.rows() > 1 && text_.fields(0) + 1 == columns_;
    named_ = format.header == "true" || (format.header == "auto" && (short_first || first_row_names()));
    first_ = named_ ? 1 : 0;
    check_widths();
    if (rows() == 0) refuse("has a header, but no rows below it");
    if (named_) {
      name_columns();
    } else {
      number_columns(like);
    }
  }

  const std::vector<std::string>& names() const override { return names_; }
  bool has_names() const override { return named_; }
  std::int64_t row_names() const override { return row_names_; }
  std::int64_t rows() const override { return static_cast<std::int64_t>(text_.rows() - first_); }
  const std::string& name() const override { return path_; }

  std::string where(std::int64_t row, std::int64_t column) const override {
    return path_ + ": line " + std::to_string(text_.line(first_ + static_cast<std::size_t>(row))) + ", column " +
           names_.at(static_cast<std::size_t>(column));
  }

  ValueType type_of(std::int64_t column) const override {
    std::int64_t number = -1, boolean = -1, text = -1;  // the first row with each type
    std::optional<bool> dates;
    for (std::int64_t row = 0; row < rows(); ++row) {
      const auto value = field(row, column);
      if (is_missing(value)) continue;
      if (number_of(value, number_format_)) {
        if (number < 0) number = row;
      } else if (boolean_of(value)) {
        if (boolean < 0) boolean = row;
      } else {
        if (text < 0) text = row;
        if (dates.value_or(true)) dates = is_date(std::string(value));
      }
      if (number >= 0 && (text >= 0 || boolean >= 0)) refuse_mixture(column, number, text >= 0 ? text : boolean);
    }
    if (text < 0) return boolean < 0 ? ValueType::kNumber : ValueType::kBoolean;
    return *dates && boolean < 0 ? ValueType::kDate : ValueType::kText;
  }

  std::vector<double> numbers(std::int64_t column) const override {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(rows()));
    for (std::int64_t row = 0; row < rows(); ++row) {
      const auto text = field(row, column);
      if (is_missing(text)) {
        values.push_back(kMissing);
        continue;
      }
      auto number = number_of(text, number_format_);
      if (!number) {
        if (const auto boolean = boolean_of(text)) number = *boolean ? 1 : 0;
      }
      if (!number) throw DataError(where(row, column) + ": \"" + std::string(text) + "\" is not a number");
      finite_float(*number, [&] { return where(row, column) + ": \"" + std::string(text) + "\""; });
      values.push_back(*number);
    }
    return values;
  }

  TextValues texts(std::int64_t column) const override {
    TextValues all;
    std::unordered_map<std::string_view, std::int64_t> codes;
    all.codes.reserve(static_cast<std::size_t>(rows()));
    for (std::int64_t row = 0; row < rows(); ++row) {
      const auto text = field(row, column);
      if (is_missing(text)) {
        all.codes.push_back(-1);
        continue;
      }
      const auto [found, added] = codes.try_emplace(text, std::ssize(all.values));
      if (added) all.values.emplace_back(text);
      all.codes.push_back(found->second);
    }
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw DataError(path_ + ": " + why); }

  [[noreturn]] void refuse_mixture(std::int64_t column, std::int64_t number, std::int64_t other) const {
    throw DataError(where(other, column) + ": \"" + std::string(field(other, column)) +
                    "\" is not a number, but the column has numbers, such as \"" + std::string(field(number, column)) +
                    "\"; if it means that the value is missing, add it to dataset.missing_values; if the column has "
                    "categories, set dataset.columns: {" +
                    names_.at(static_cast<std::size_t>(column)) + ": {as: category}}; or leave the column out " +
                    "(dataset.drop)");
  }

  std::string_view field(std::int64_t row, std::int64_t column) const {
    return text_.field(first_ + static_cast<std::size_t>(row), static_cast<std::size_t>(column));
  }

  bool is_missing(std::string_view text) const { return missing_.contains(text); }

  // Returns the most frequent number of fields of the rows below the first one; the smallest one of several.
  std::size_t usual_fields() const {
    std::map<std::size_t, std::size_t> counts;
    for (std::size_t row = text_.rows() > 1 ? 1 : 0; row < text_.rows(); ++row) ++counts[text_.fields(row)];
    return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  }

  // A header may have one field less than the rows if these begin with row names, as written by R's write.table.
  void check_widths() {
    for (std::size_t row = 0; row < text_.rows(); ++row) {
      const auto fields = text_.fields(row);
      if (fields == columns_ || (row == 0 && named_ && fields + 1 == columns_)) continue;
      refuse("line " + std::to_string(text_.line(row)) + ": has " + std::to_string(fields) +
             " fields, and most lines have " + std::to_string(columns_) +
             "; look for separators that are not in quotes, or set dataset.separator, skip_lines or comment");
    }
  }

  bool is_number(std::size_t row, std::size_t column) const {
    return number_of(text_.field(row, column), number_format_).has_value();
  }

  // The first row is a header unless it has a number in some column, and in every column that has only numbers below.
  bool first_row_names() const {
    std::size_t numbers = 0, names_above_numbers = 0;
    for (std::size_t column = 0; column < std::min(text_.fields(0), columns_); ++column) {
      const bool number = is_number(0, column);
      numbers += number ? 1 : 0;
      if (!number && !is_missing(text_.field(0, column)) && all_numbers_below(column)) ++names_above_numbers;
    }
    return names_above_numbers > 0 || numbers == 0;
  }

  bool all_numbers_below(std::size_t column) const {
    bool any = false;
    for (std::size_t row = 1; row < std::min(text_.rows(), kRowsToFindHeader); ++row) {
      if (column >= text_.fields(row) || is_missing(text_.field(row, column))) continue;
      if (!is_number(row, column)) return false;
      any = true;
    }
    return any;
  }

  void name_columns() {
    const bool short_header = text_.fields(0) + 1 == columns_;
    // Lines end with a separator, but the header does not.
    const bool at_the_end = short_header && all_empty(columns_ - 1);
    if (short_header && !at_the_end) {
      row_names_ = 0;
      names_.emplace_back("unnamed_0");
    }
    for (std::size_t i = 0; i < text_.fields(0); ++i) {
      const std::string name(text_.field(0, i));
      if (name.empty() && (names_.empty() || all_empty(i)) && row_names_ < 0) row_names_ = std::ssize(names_);
      names_.push_back(name.empty() ? "unnamed_" + std::to_string(names_.size()) : name);
    }
    if (at_the_end) {
      row_names_ = std::ssize(names_);
      names_.push_back("unnamed_" + std::to_string(names_.size()));
    }
    std::set<std::string> seen;
    for (const auto& name : names_) {
      if (seen.insert(name).second) continue;
      refuse("line " + std::to_string(text_.line(0)) + ": two columns are named \"" + name +
             "\"; if the first row is no header, set dataset.header: false");
    }
  }

  bool all_empty(std::size_t column) const {
    for (std::size_t row = 1; row < text_.rows(); ++row) {
      if (!text_.field(row, column).empty()) return false;
    }
    return true;
  }

  void number_columns(const TableSource* like) {
    if (like && like->has_names() && std::ssize(like->names()) == static_cast<std::int64_t>(columns_)) {
      names_ = like->names();
      row_names_ = like->row_names();
      return;
    }
    for (std::size_t i = 0; i < columns_; ++i) names_.push_back(std::to_string(i));
  }

  const std::string path_;
  const std::set<std::string, std::less<>> missing_;
  const NumberFormat number_format_;
  const DelimitedText text_;
  std::size_t columns_ = 0, first_ = 0;  // `first_` is the first row below the header
  bool named_ = false;
  std::vector<std::string> names_;
  std::int64_t row_names_ = -1;
};

}  // namespace

std::shared_ptr<const TableSource> read_delimited_table(const std::string& path, const DelimitedFormat& format,
                                                        const TableSource* like) {
  return std::make_shared<DelimitedTable>(path, format, like);
}

}  // namespace phalanx
