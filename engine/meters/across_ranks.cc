// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/across_ranks.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace phalanx {

void sum_over_ranks(std::initializer_list<std::span<std::int64_t>> spans, Communicator& group) {
  std::size_t count = 0;
  for (const auto& span : spans) count += span.size();
  const at::Tensor all = at::empty({static_cast<std::int64_t>(count)}, at::kLong);
  auto* next = all.data_ptr<std::int64_t>();
  for (const auto& span : spans) next = std::ranges::copy(span, next).out;
  group.all_reduce(all, Reduction::kSum).wait();
  const auto* sum = all.data_ptr<std::int64_t>();
  for (const auto& span : spans) {
    std::copy_n(sum, span.size(), span.begin());
    sum += span.size();
  }
}

at::Tensor gather_ranks(const at::Tensor& elements, Communicator& group) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()));
  at::Tensor all_counts = at::empty({group.size()}, at::kLong);
  const at::Tensor count = at::empty({1}, at::kLong).fill_(elements.numel());
  group.all_gather(all_counts, count).wait();
  std::copy_n(all_counts.data_ptr<std::int64_t>(), counts.size(), counts.begin());
  at::Tensor all = at::empty({std::accumulate(counts.begin(), counts.end(), std::int64_t{0})}, elements.options());
  group.all_gather(all, elements.contiguous(), counts).wait();
  return all;
}

std::int64_t largest_of_ranks(std::int64_t number, Communicator& group) {
  const at::Tensor largest = at::empty({1}, at::kLong).fill_(number);
  group.all_reduce(largest, Reduction::kMax).wait();
  return largest.item<std::int64_t>();
}

}  // namespace phalanx
