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

/// The numbers of a column, [rows] or, of lists that are all as long, [rows, length, ...]: float32, or int64 of whole
/// numbers where `whole` is asked for. `where` is what errors begin with: file, group and column. Throws DataError for
/// other types, nulls and lists of different lengths, with the row.
at::Tensor numbers_of(const arrow::Array& column, bool whole, const std::string& where);

/// Returns true for types whose values append_numbers() takes: numbers, decimals, booleans, and no values at all
/// (null).
bool is_number(const arrow::DataType& type);

/// Appends the numbers of a column to `values`, NaN for nulls. `where` is what errors begin with. Throws DataError for
/// other types than is_number() says.
void append_numbers(const arrow::Array& column, std::vector<double>& values, const std::string& where);

/// Returns the text, or the bytes, in a row of a column of text or bytes that is not null.
std::string_view text_of(const arrow::Array& column, std::int64_t row);

/// The encoded image in each row: a column of bytes, or of structures that have a field "bytes", as Hugging Face's
/// have.
class ImageColumn {
 public:
  /// Throws DataError for a column of another type.
  ImageColumn(std::shared_ptr<arrow::Array> column, const std::string& where);

  /// Throws DataError where there are none.
  std::string_view bytes(std::int64_t row) const;

 private:
  std::string where_;
  std::shared_ptr<arrow::Array> bytes_;
};

/// The text in each row, in UTF-8.
class TextColumn {
 public:
  /// Throws DataError for a column of another type.
  TextColumn(std::shared_ptr<arrow::Array> column, const std::string& where);

  std::int64_t rows() const { return text_->length(); }

  /// Throws DataError where there is none.
  std::string_view text(std::int64_t row) const;

 private:
  std::string where_;
  std::shared_ptr<arrow::Array> text_;
};

}  // namespace phalanx
