// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/columns.h"

#include <ATen/ops/empty.h>
#include <arrow/array/array_binary.h>
#include <arrow/array/array_decimal.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw DataError(where + ": " + what); }

void refuse_nulls(const arrow::Array& array, const std::string& where) {
  if (array.null_count() == 0) return;
  std::int64_t row = 0;
  while (array.IsValid(row)) ++row;
  refuse(where, "the value is missing (null) in row " + std::to_string(row) + " of the group");
}

template <class ListArray>
std::shared_ptr<arrow::Array> values_of_lists(const arrow::Array& array, std::vector<std::int64_t>& shape,
                                              const std::string& where) {
  const auto& lists = static_cast<const ListArray&>(array);
  const std::int64_t length = lists.length() > 0 ? static_cast<std::int64_t>(lists.value_length(0)) : 0;
  for (std::int64_t i = 0; i < lists.length(); ++i) {
    if (lists.value_length(i) == length) continue;
    refuse(where, "lists of " + std::to_string(length) + " numbers, but the list in row " + std::to_string(i) +
                      " of the group has " + std::to_string(lists.value_length(i)) +
                      "; all lists must have the same length");
  }
  shape.push_back(length);
  auto values = lists.Flatten();
  if (!values.ok()) refuse(where, values.status().ToString());
  return *values;
}

template <class ArrowType, class Number>
bool copy_if(const arrow::Array& array, Number* to) {
  if (array.type_id() != ArrowType::type_id) return false;
  const auto& numbers = static_cast<const typename arrow::TypeTraits<ArrowType>::ArrayType&>(array);
  for (std::int64_t i = 0; i < numbers.length(); ++i) to[i] = static_cast<Number>(numbers.Value(i));
  return true;
}

template <class Number>
bool copy_whole(const arrow::Array& array, Number* to) {
  return copy_if<arrow::Int64Type>(array, to) || copy_if<arrow::Int32Type>(array, to) ||
         copy_if<arrow::Int16Type>(array, to) || copy_if<arrow::Int8Type>(array, to) ||
         copy_if<arrow::UInt64Type>(array, to) || copy_if<arrow::UInt32Type>(array, to) ||
         copy_if<arrow::UInt16Type>(array, to) || copy_if<arrow::UInt8Type>(array, to) ||
         copy_if<arrow::BooleanType>(array, to);
}

template <class Number>
bool copy_half(const arrow::Array& array, Number* to) {
  if (array.type_id() != arrow::Type::HALF_FLOAT) return false;
  const auto& numbers = static_cast<const arrow::HalfFloatArray&>(array);
  for (std::int64_t i = 0; i < numbers.length(); ++i) {
    to[i] = static_cast<Number>(arrow::util::Float16::FromBits(numbers.Value(i)).ToFloat());
  }
  return true;
}

template <class Number>
bool copy_decimal(const arrow::Array& array, Number* to) {
  if (array.type_id() != arrow::Type::DECIMAL128) return false;
  const auto& numbers = static_cast<const arrow::Decimal128Array&>(array);
  const auto scale = static_cast<const arrow::Decimal128Type&>(*array.type()).scale();
  for (std::int64_t i = 0; i < numbers.length(); ++i) {
    to[i] = static_cast<Number>(arrow::Decimal128(numbers.GetValue(i)).ToDouble(scale));
  }
  return true;
}

template <class Number>
bool copy_any(const arrow::Array& array, Number* to) {
  return copy_if<arrow::FloatType>(array, to) || copy_if<arrow::DoubleType>(array, to) || copy_half(array, to) ||
         copy_decimal(array, to) || copy_whole(array, to);
}

bool is_binary(const arrow::Array& column) {
  const auto type = column.type_id();
  return type == arrow::Type::BINARY || type == arrow::Type::LARGE_BINARY || type == arrow::Type::BINARY_VIEW;
}

}  // namespace

bool is_number(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) || type.id() == arrow::Type::BOOL ||
         type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::NA;
}

void append_numbers(const arrow::Array& column, std::vector<double>& values, const std::string& where) {
  const auto first = values.size();
  values.resize(first + static_cast<std::size_t>(column.length()), std::numeric_limits<double>::quiet_NaN());
  if (column.type_id() == arrow::Type::NA) return;
  if (!copy_any(column, values.data() + first)) {
    refuse(where, "has the type " + column.type()->ToString() + ", expected numbers");
  }
  if (column.null_count() == 0) return;
  for (std::int64_t row = 0; row < column.length(); ++row) {
    if (column.IsNull(row)) values[first + static_cast<std::size_t>(row)] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::string_view text_of(const arrow::Array& column, std::int64_t row) {
  switch (column.type_id()) {
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return static_cast<const arrow::BinaryViewArray&>(column).GetView(row);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(column).GetView(row);
    default:
      return static_cast<const arrow::BinaryArray&>(column).GetView(row);
  }
}

at::Tensor numbers_of(const arrow::Array& column, bool whole, const std::string& where) {
  std::vector<std::int64_t> shape{column.length()};
  refuse_nulls(column, where);
  std::shared_ptr<arrow::Array> inner;
  const auto* array = &column;
  for (;;) {
    switch (array->type_id()) {
      case arrow::Type::FIXED_SIZE_LIST:
        inner = values_of_lists<arrow::FixedSizeListArray>(*array, shape, where);
        break;
      case arrow::Type::LIST:
        inner = values_of_lists<arrow::ListArray>(*array, shape, where);
        break;
      case arrow::Type::LARGE_LIST:
        inner = values_of_lists<arrow::LargeListArray>(*array, shape, where);
        break;
      default: {
        at::Tensor numbers = at::empty(shape, whole ? at::kLong : at::kFloat);
        const bool copied = whole ? copy_whole(*array, numbers.mutable_data_ptr<std::int64_t>())
                                  : copy_any(*array, numbers.mutable_data_ptr<float>());
        if (!copied) {
          refuse(where, "has the type " + column.type()->ToString() + ", expected " +
                            (whole ? "whole numbers" : "numbers, or lists of numbers"));
        }
        return numbers;
      }
    }
    refuse_nulls(*inner, where);
    array = inner.get();
  }
}

ImageColumn::ImageColumn(std::shared_ptr<arrow::Array> column, const std::string& where)
    : where_(where), bytes_(std::move(column)) {
  const auto type = bytes_->type()->ToString();
  if (bytes_->type_id() == arrow::Type::STRUCT) {
    auto field = static_cast<const arrow::StructArray&>(*bytes_).GetFieldByName("bytes");
    if (!field) refuse(where, "has the type " + type + ", without a field \"bytes\" of images");
    bytes_ = std::move(field);
  }
  if (!is_binary(*bytes_)) refuse(where, "has the type " + type + ", expected images as bytes");
}

std::string_view ImageColumn::bytes(std::int64_t row) const {
  if (bytes_->IsNull(row))
    refuse(where_, "the bytes of the image are missing (null) in row " + std::to_string(row) + " of the group");
  return text_of(*bytes_, row);
}

TextColumn::TextColumn(std::shared_ptr<arrow::Array> column, const std::string& where)
    : where_(where), text_(std::move(column)) {
  if (arrow::is_string(text_->type_id()) || text_->type_id() == arrow::Type::STRING_VIEW) return;
  refuse(where, "has the type " + text_->type()->ToString() + ", expected text");
}

std::string_view TextColumn::text(std::int64_t row) const {
  if (text_->IsNull(row)) refuse(where_, "the value is missing (null) in row " + std::to_string(row) + " of the group");
  return text_of(*text_, row);
}

}  // namespace phalanx
