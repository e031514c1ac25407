// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/arrow_table.h"

#include <arrow/array/array_dict.h>
#include <arrow/array/array_primitive.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "datasets/arrow/columns.h"
#include "datasets/arrow/groups.h"
#include "datasets/tables/finite_float.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr const char* kIndexOfPandas = "__index_level_0__";

bool is_text(const arrow::DataType& type) {
  return arrow::is_string(type.id()) || type.id() == arrow::Type::STRING_VIEW || type.id() == arrow::Type::DICTIONARY;
}

// Returns nullopt for types that cannot be part of a sample.
std::optional<ValueType> value_type(const arrow::DataType& type) {
  if (type.id() == arrow::Type::BOOL) return ValueType::kBoolean;
  if (is_number(type)) return ValueType::kNumber;
  if (arrow::is_temporal(type.id())) return ValueType::kDate;
  if (is_text(type)) return ValueType::kText;
  return std::nullopt;
}

// Returns the text of a value that is not null.
std::string text_at(const arrow::Array& column, std::int64_t row, const std::string& where) {
  if (column.type_id() == arrow::Type::DICTIONARY) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(column);
    return text_at(*coded.dictionary(), coded.GetValueIndex(row), where);
  }
  if (is_text(*column.type())) return std::string(text_of(column, row));
  auto value = column.GetScalar(row);
  if (!value.ok()) throw DataError(where + ": " + value.status().ToString());
  return (*value)->ToString();
}

bool is_missing(const arrow::Array& column, std::int64_t row) {
  if (column.type_id() != arrow::Type::DICTIONARY) return column.IsNull(row);
  const auto& coded = static_cast<const arrow::DictionaryArray&>(column);
  return coded.IsNull(row) || coded.dictionary()->IsNull(coded.GetValueIndex(row));
}

class ArrowTable final : public TableSource {
 public:
  explicit ArrowTable(const std::vector<std::filesystem::path>& files)
      : groups_(files),
        name_(files.front().string() +
              (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : std::string())) {
    for (const auto& field : groups_.schema(0).fields()) {
      if (std::ranges::find(names_, field->name()) != names_.end()) {
        throw DataError(name_ + ": two columns are named \"" + field->name() + "\"");
      }
      names_.push_back(field->name());
    }
  }

  const std::vector<std::string>& names() const override { return names_; }
  bool has_names() const override { return true; }
  std::int64_t rows() const override { return groups_.rows(); }
  const std::string& name() const override { return name_; }

  std::int64_t row_names() const override {
    const auto found = std::ranges::find(names_, kIndexOfPandas);
    return found == names_.end() ? -1 : found - names_.begin();
  }

  ValueType type_of(std::int64_t column) const override {
    std::optional<ValueType> type;  // type in the first group that has a value that is not null
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto& field = field_of(group, column);
      const auto other = value_type(*field.type());
      if (!other) {
        throw DataError(groups_.name(group, field.name()) + ": has the type " + field.type()->ToString() +
                        ", which is not supported; leave the column out (dataset.drop)");
      }
      if (field.type()->id() == arrow::Type::NA) continue;
      if (type && *type != *other) {
        throw DataError(groups_.name(group, field.name()) + ": has the type " + field.type()->ToString() +
                        ", but the column has values of type " + to_string(*type) + " in " +
                        groups_.name(0, field.name()));
      }
      type = other;
    }
    if (type == ValueType::kText && all_dates(column)) return ValueType::kDate;
    return type.value_or(ValueType::kNumber);
  }

  std::vector<double> numbers(std::int64_t column) const override {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(rows()));
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      append_numbers(*read(group, column), values, groups_.name(group, name_of(column)));
    }
    for (std::int64_t row = 0; row < std::ssize(values); ++row) {
      const auto value = values[static_cast<std::size_t>(row)];
      if (!std::isnan(value)) finite_float(value, [&] { return where(row, column); });
    }
    return values;
  }

  TextValues texts(std::int64_t column) const override {
    TextValues all;
    std::unordered_map<std::string, std::int64_t> codes;
    all.codes.reserve(static_cast<std::size_t>(rows()));
    for_each_text(column, [&](std::optional<std::string> text) {
      if (!text) {
        all.codes.push_back(-1);
        return true;
      }
      const auto [found, added] = codes.try_emplace(*std::move(text), std::ssize(all.values));
      if (added) all.values.push_back(found->first);
      all.codes.push_back(found->second);
      return true;
    });
    return all;
  }

  std::string where(std::int64_t row, std::int64_t column) const override {
    const auto place = groups_.place(row);
    return groups_.name(place.group, name_of(column)) + ", row " + std::to_string(place.row) + " of the group";
  }

 private:
  const std::string& name_of(std::int64_t column) const { return names_.at(static_cast<std::size_t>(column)); }

  const arrow::Field& field_of(std::size_t group, std::int64_t column) const {
    return *groups_.schema(group).field(groups_.column(group, name_of(column)));
  }

  std::shared_ptr<arrow::Array> read(std::size_t group, std::int64_t column) const {
    return groups_.read(group, name_of(column));
  }

  // Calls `body` with the text of each row, or nullopt for a missing value, until it returns false.
  template <class Body>
  void for_each_text(std::int64_t column, const Body& body) const {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto values = read(group, column);
      const auto where = groups_.name(group, name_of(column));
      for (std::int64_t row = 0; row < values->length(); ++row) {
        const bool missing = is_missing(*values, row);
        if (!body(missing ? std::nullopt : std::optional(text_at(*values, row, where)))) return;
      }
    }
  }

  bool all_dates(std::int64_t column) const {
    bool any = false, all = true;
    for_each_text(column, [&](const std::optional<std::string>& text) {
      any = any || text.has_value();
      all = !text || is_date(*text);
      return all;
    });
    return any && all;
  }

  const RowGroups groups_;
  const std::string name_;
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const TableSource> read_arrow_table(const std::vector<std::filesystem::path>& files) {
  return std::make_shared<ArrowTable>(files);
}

}  // namespace phalanx
