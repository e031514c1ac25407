#pragma once

#include <ATen/core/Tensor.h>
#include <arrow/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace phalanx {

/// The numbers of a column, [rows] or, of lists that are all as long, [rows, length, ...]: float32, or int64 of whole
/// numbers where `whole` is asked for. `where` is what errors begin with: file, group and column. Throws DataError for
/// other types, nulls and lists of different lengths, with the row.
at::Tensor numbers_of(const arrow::Array& column, bool whole, const std::string& where);

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
