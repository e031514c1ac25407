#include "engine/meters/mean.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "engine/meters/across_ranks.h"

namespace phalanx {

void Mean::add(double sum, std::int64_t count) {
  sum_.add(sum);
  count_ += count;
}

void Mean::add(const at::Tensor& values) {
  const at::Tensor all = values.to(at::kCPU, at::kDouble).contiguous();
  const auto* value = all.data_ptr<double>();
  for (std::int64_t i = 0; i < all.numel(); ++i) sum_.add(value[i]);
  count_ += all.numel();
}

std::optional<double> Mean::take(Communicator& group) {
  Mean all = std::exchange(*this, {});
  sum_over_ranks({all.sum_.cells(), {&all.count_, 1}}, group);
  if (all.count_ == 0) return std::nullopt;
  return all.sum_.value() / static_cast<double>(all.count_);
}

at::Tensor Mean::state() {
  const auto cells = sum_.cells();
  at::Tensor all = at::empty({1 + static_cast<std::int64_t>(cells.size())}, at::kLong);
  auto* first = all.data_ptr<std::int64_t>();
  *first = count_;
  std::ranges::copy(cells, first + 1);
  return all;
}

void Mean::absorb(const at::Tensor& state) {
  const auto* number = state.data_ptr<std::int64_t>();
  count_ += *number++;
  for (auto& cell : sum_.cells()) cell += *number++;
}

}  // namespace phalanx
