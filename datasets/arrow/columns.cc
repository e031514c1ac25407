#include "datasets/arrow/columns.h"

#include <ATen/ops/empty.h>
#include <arrow/array/array_binary.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/type_traits.h>

#include <algorithm>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw DataError(where + ": " + what); }

void refuse_nulls(const arrow::Array& array, const std::string& where) {
  if (array.null_count() == 0) return;
  std::int64_t row = 0;
  while (array.IsValid(row)) ++row;
  refuse(where, "nothing (null) in row " + std::to_string(row) + " of the group");
}

template <class ListArray>
std::shared_ptr<arrow::Array> values_of_lists(const arrow::Array& array, std::vector<std::int64_t>& shape,
                                              const std::string& where) {
  const auto& lists = static_cast<const ListArray&>(array);
  const std::int64_t length = lists.length() > 0 ? static_cast<std::int64_t>(lists.value_length(0)) : 0;
  for (std::int64_t i = 0; i < lists.length(); ++i) {
    if (lists.value_length(i) == length) continue;
    refuse(where, "lists of " + std::to_string(length) + " and, in row " + std::to_string(i) + " of the group, of " +
                      std::to_string(lists.value_length(i)) + " numbers; they must be as long");
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

bool copy_any(const arrow::Array& array, float* to) {
  return copy_if<arrow::FloatType>(array, to) || copy_if<arrow::DoubleType>(array, to) || copy_whole(array, to);
}

// Of bytes or text, which Arrow has as bytes.
std::string_view view_of(const arrow::Array& column, std::int64_t row) {
  const bool small = column.type_id() == arrow::Type::BINARY || column.type_id() == arrow::Type::STRING;
  return small ? static_cast<const arrow::BinaryArray&>(column).GetView(row)
               : static_cast<const arrow::LargeBinaryArray&>(column).GetView(row);
}

}  // namespace

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
  if (bytes_->type_id() != arrow::Type::BINARY && bytes_->type_id() != arrow::Type::LARGE_BINARY) {
    refuse(where, "has the type " + type + ", expected images as bytes");
  }
}

std::string_view ImageColumn::bytes(std::int64_t row) const {
  if (bytes_->IsNull(row)) refuse(where_, "no bytes of an image in row " + std::to_string(row) + " of the group");
  return view_of(*bytes_, row);
}

TextColumn::TextColumn(std::shared_ptr<arrow::Array> column, const std::string& where)
    : where_(where), text_(std::move(column)) {
  if (text_->type_id() == arrow::Type::STRING || text_->type_id() == arrow::Type::LARGE_STRING) return;
  refuse(where, "has the type " + text_->type()->ToString() + ", expected text");
}

std::string_view TextColumn::text(std::int64_t row) const {
  if (text_->IsNull(row)) refuse(where_, "nothing (null) in row " + std::to_string(row) + " of the group");
  return view_of(*text_, row);
}

}  // namespace phalanx
