#include "models/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>

#include "framework/parallel/random_rows.h"

namespace phalanx {

at::Tensor DropoutImpl::forward(const at::Tensor& input) const {
  if (!is_training() || rate_ == 0) return input;
  const auto key = RandomRows::current();
  if (!key) return at::dropout(input, rate_, /*train=*/true);
  return input * dropout_factors(input, rate_, layer_, *key);
}

}  // namespace phalanx
