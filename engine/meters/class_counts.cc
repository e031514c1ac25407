// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/class_counts.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "engine/meters/across_ranks.h"

namespace phalanx {

void ClassCounts::add(const at::Tensor& counts) {
  if (!counts_.defined()) counts_ = at::zeros(counts.sizes(), at::kLong);
  counts_.add_(counts);
}

at::Tensor ClassCounts::take(Communicator& group) {
  at::Tensor all = std::exchange(counts_, {});
  const auto rows = largest_of_ranks(all.defined() ? all.size(0) : 0, group);
  const auto columns = largest_of_ranks(all.defined() ? all.size(1) : 0, group);
  if (!all.defined()) all = at::zeros({rows, columns}, at::kLong);
  if (rows > 0) group.all_reduce(all, Reduction::kSum).wait();
  return all;
}

std::vector<at::Tensor> ClassCounts::state() const {
  return {counts_.defined() ? counts_ : at::zeros({0, 0}, at::kLong)};
}

void ClassCounts::merge_state(const std::vector<at::Tensor>& state) {
  if (state.at(0).numel() > 0) add(state[0]);
}

}  // namespace phalanx
