// SPDX-License-Identifier: Apache-2.0
#include "datasets/batch_memory.h"

#include <ATen/ops/empty.h>

namespace phalanx {
namespace {

// A view shares the storage; a copy of the handle shares the tensor itself.
bool unshared(const at::Tensor& tensor) { return tensor.use_count() == 1 && tensor.storage().use_count() == 1; }

bool fits(const at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType dtype) {
  return tensor.defined() && tensor.sizes() == sizes && tensor.scalar_type() == dtype && tensor.is_cpu() &&
         tensor.is_contiguous() && !tensor.requires_grad();
}

}  // namespace

void ensure(at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType dtype) {
  if (fits(tensor, sizes, dtype) && unshared(tensor)) return;
  tensor.reset();  // before the new one, so that the allocator can hand the same block out again
  tensor = at::empty(sizes, at::TensorOptions(dtype));
}

at::Tensor& ensure(Tensors& tensors, std::size_t index, at::IntArrayRef sizes, at::ScalarType dtype) {
  if (tensors.size() <= index) tensors.resize(index + 1);
  ensure(tensors[index], sizes, dtype);
  return tensors[index];
}

}  // namespace phalanx
