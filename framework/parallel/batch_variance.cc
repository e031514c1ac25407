// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/batch_variance.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "framework/base/error.h"

namespace phalanx {

void require_variance(double values, const at::Tensor& input) {
  if (values != 1) return;
  std::ostringstream sizes;
  sizes << input.sizes();
  throw ConfigError("batch norm: expected more than 1 value per channel when training, but an input " + sizes.str() +
                    " has one, and its variance is undefined; choose a larger train.global_batch_size, one that leaves"
                    " no batch or rank with a single sample, or fewer ranks or parts");
}

void require_variance(const at::Tensor& input) {
  require_variance(static_cast<double>(input.numel() / std::max<std::int64_t>(1, input.size(1))), input);
}

}  // namespace phalanx
