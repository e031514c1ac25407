#include "engine/optim/leave_unused.h"

#include <ATen/core/grad_mode.h>

#include <cstddef>

namespace phalanx {

void LeaveUnused::update() {
  const auto unused = unused_();
  if (unused.empty()) return inner().update();
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> left = tensors_of(unused);
  std::vector<at::Tensor> copies;
  copies.reserve(left.size());
  for (const auto& tensor : left) copies.push_back(tensor.clone());
  inner().update();
  for (std::size_t i = 0; i < left.size(); ++i) left[i].copy_(copies[i]);
}

std::vector<at::Tensor> LeaveUnused::tensors_of(const std::set<std::string>& parameters) {
  std::vector<at::Tensor> all;
  std::vector<std::vector<at::Tensor>> runs;  // by slice: what has a number for each of its elements
  for (const auto& slice : slices()) runs.push_back({slice.values.detach()});
  for (const auto& state : inner().state()) {
    if (state.parameter.empty()) {
      runs.at(state.slice).push_back(state.values);
    } else if (parameters.contains(state.parameter)) {
      all.push_back(state.values);
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& segment : slices()[i].segments) {
      if (!parameters.contains(segment.name)) continue;
      for (const auto& run : runs[i]) all.push_back(run.narrow(0, segment.begin, segment.count));
    }
  }
  return all;
}

}  // namespace phalanx
