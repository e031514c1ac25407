// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/padded_columns.h"

#include <ATen/ops/empty.h>

namespace phalanx {
namespace {

bool is_laid_out(const at::Tensor& matrix, std::int64_t stride) {
  const auto bytes = static_cast<std::size_t>(matrix.size(0) * stride) * matrix.element_size();
  return matrix.stride(1) == 1 && matrix.stride(0) == stride && matrix.storage_offset() == 0 &&
         matrix.storage().nbytes() >= bytes;
}

}  // namespace

at::Tensor empty_padded(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                        const at::TensorOptions& options) {
  const at::Tensor whole = at::empty({rows, stride}, options);
  whole.narrow(1, columns, stride - columns).zero_();
  return whole.narrow(1, 0, columns);
}

at::Tensor with_padding(const at::Tensor& matrix, std::int64_t stride) {
  if (is_laid_out(matrix, stride)) return matrix.as_strided({matrix.size(0), stride}, {stride, 1});
  const at::Tensor copy = empty_padded(matrix.size(0), matrix.size(1), stride, matrix.options());
  copy.copy_(matrix);
  return copy.as_strided({matrix.size(0), stride}, {stride, 1});
}

}  // namespace phalanx
