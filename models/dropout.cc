// SPDX-License-Identifier: Apache-2.0
#include "models/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <c10/util/accumulate.h>

#include <bit>
#include <limits>
#include <stdexcept>

#include "framework/parallel/random_rows.h"

namespace phalanx {

at::Tensor DropoutImpl::forward(const at::Tensor& input) const {
  if (!drops()) return input;
  const auto key = RandomRows::current();
  if (!key) return at::dropout(input, rate_, /*train=*/true);
  if (parts_ == 1) return input * dropout_factors(input, rate_, layer_, *key);
  if (!take_) {
    const GroupsPart part{.group_elements = c10::multiply_integers(input.sizes().slice(2)),
                          .first_group = part_ * input.size(1)};
    return input * dropout_factors(input, part, rate_, layer_, *key);
  }
  auto sizes = input.sizes().vec();
  sizes.at(1) *= parts_;
  const at::Tensor all = dropout_factors(at::empty(sizes, input.options().requires_grad(false)), rate_, layer_, *key);
  return input * take_(all);
}

// A device draws its key itself, so the host does not wait for it.
DropoutNumbers DropoutImpl::numbers(std::int64_t positions, const c10::Device& device) const {
  if (take_) throw std::logic_error("dropout of parts needs positions that are consecutive");
  DropoutNumbers numbers{.rate = rate_, .layer = layer_, .key = {}, .first_group = part_ * positions};
  if (const auto key = RandomRows::current()) {
    numbers.key = *key;
    return numbers;
  }
  const at::Tensor drawn =
      at::randint(std::numeric_limits<std::int64_t>::max(), {}, at::device(device).dtype(at::kLong));
  if (device.is_cpu()) {
    numbers.key.step = std::bit_cast<std::uint64_t>(drawn.item<std::int64_t>());
  } else {
    numbers.key.step_on_device = drawn;
  }
  return numbers;
}

}  // namespace phalanx
