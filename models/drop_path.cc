// SPDX-License-Identifier: Apache-2.0
#include "models/drop_path.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <vector>

namespace phalanx {

DropPathImpl::DropPathImpl(double rate) : rate_(rate) { rows_ = register_module("rows", Dropout(rate)); }

at::Tensor DropPathImpl::forward(const at::Tensor& branch) {
  if (!is_training() || rate_ == 0) return branch;
  std::vector<std::int64_t> one_per_row(static_cast<std::size_t>(branch.dim()), 1);
  one_per_row[0] = branch.size(0);
  return branch * rows_(at::ones(one_per_row, branch.options()));
}

}  // namespace phalanx
