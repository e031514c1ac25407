// SPDX-License-Identifier: Apache-2.0
#include "models/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

#include "framework/parallel/random_rows.h"

namespace phalanx {

at::Tensor DropoutImpl::forward(const at::Tensor& input) const {
  if (!is_training() || rate_ == 0) return input;
  const auto key = RandomRows::current();
  if (!key) return at::dropout(input, rate_, /*train=*/true);
  if (parts_ == 1) return input * dropout_factors(input, rate_, layer_, *key);
  auto sizes = input.sizes().vec();
  sizes.at(1) *= parts_;
  const at::Tensor all = dropout_factors(at::empty(sizes, input.options().requires_grad(false)), rate_, layer_, *key);
  return input * take_(all);
}

}  // namespace phalanx
