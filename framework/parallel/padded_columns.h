// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// Matrices whose rows are longer in memory than the matrix is wide. The matrix units of GPUs are several times slower
/// for 16-bit matrices with rows whose length is not a multiple of 8, such as the 50257 logits of GPT-2.
namespace phalanx {

/// Returns a matrix [rows, columns] in rows of `stride` elements, at least `columns`. The elements after the columns
/// are 0, the others are not initialized.
at::Tensor empty_padded(std::int64_t rows, std::int64_t columns, std::int64_t stride, const at::TensorOptions& options);

/// Returns a matrix [rows, stride] that begins with the columns of `matrix`. If `matrix` has the layout of
/// empty_padded(), the result shares its memory, and the further columns keep their values. Otherwise the result is a
/// copy, and they are 0.
at::Tensor with_padding(const at::Tensor& matrix, std::int64_t stride);

}  // namespace phalanx
