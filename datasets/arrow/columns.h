// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Returns the numbers of a column as [rows], or as [rows, length, ...] for lists of equal length. They are float32, or
/// int64 if `whole` is true, which then requires whole numbers. Errors begin with `where`: file, group and column.
/// Throws DataError, with the row, for other types, nulls and lists of different lengths.
at::Tensor numbers_of(const arrow::Array& column, bool whole, const std::string& where);

/// Returns true for the types that append_numbers() accepts: numbers, decimals, booleans, and the null type.
bool is_number(const arrow::DataType& type);

/// Appends the numbers of a column to `values`, with NaN for nulls. Errors begin with `where`. Throws DataError unless
/// is_number() is true for the column's type.
void append_numbers(const arrow::Array& column, std::vector<double>& values, const std::string& where);

/// Returns the text or the bytes in one row of a text or binary column. The value must not be null.
std::string_view text_of(const arrow::Array& column, std::int64_t row);

/// A column with one encoded image per row: binary values, or structures with a field "bytes", as Hugging Face datasets
/// have.
class ImageColumn {
 public:
  /// Throws DataError for a column of another type.
  ImageColumn(std::shared_ptr<arrow::Array> column, const std::string& where);

  /// Throws DataError if the row has no bytes.
  std::string_view bytes(std::int64_t row) const;

 private:
  std::string where_;
  std::shared_ptr<arrow::Array> bytes_;
};

/// A column with one text per row, in UTF-8.
class TextColumn {
 public:
  /// Throws DataError for a column of another type.
  TextColumn(std::shared_ptr<arrow::Array> column, const std::string& where);

  std::int64_t rows() const { return text_->length(); }

  /// Throws DataError if the row has no text.
  std::string_view text(std::int64_t row) const;

 private:
  std::string where_;
  std::shared_ptr<arrow::Array> text_;
};

}  // namespace phalanx
