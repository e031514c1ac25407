#include "engine/meters/mean.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "engine/meters/across_ranks.h"
#include "framework/base/error.h"

namespace phalanx {

void Mean::add(double sum, double weight) {
  sum_.add(sum);
  weight_.add(weight);
}

void Mean::add(const at::Tensor& values) {
  const at::Tensor all = values.to(at::kCPU, at::kDouble).contiguous();
  const auto* value = all.data_ptr<double>();
  for (std::int64_t i = 0; i < all.numel(); ++i) sum_.add(value[i]);
  weight_.add(static_cast<double>(all.numel()));
}

std::optional<double> Mean::take(Communicator& group) {
  Mean all = std::exchange(*this, {});
  sum_over_ranks({all.sum_.cells(), all.weight_.cells()}, group);
  const double weight = all.weight_.value();
  if (weight == 0) return std::nullopt;
  return all.sum_.value() / weight;
}

at::Tensor Mean::state() {
  const auto sum = sum_.cells(), weight = weight_.cells();
  at::Tensor all = at::empty({static_cast<std::int64_t>(sum.size() + weight.size())}, at::kLong);
  std::ranges::copy(weight, std::ranges::copy(sum, all.data_ptr<std::int64_t>()).out);
  return all;
}

void Mean::absorb(const at::Tensor& state) {
  if (state.numel() != static_cast<std::int64_t>(sum_.cells().size() + weight_.cells().size())) {
    throw DataError("the checkpoint is of an older version, whose meters kept other numbers; resume it with that one");
  }
  const auto* number = state.data_ptr<std::int64_t>();
  for (auto& cell : sum_.cells()) cell += *number++;
  for (auto& cell : weight_.cells()) cell += *number++;
}

}  // namespace phalanx
