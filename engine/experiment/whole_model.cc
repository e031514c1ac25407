// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/whole_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace phalanx {

std::vector<Pipeline::Whole> WholeModel::parameters() const {
  return pipeline_ != nullptr ? pipeline_->parameters() : Pipeline::described(part_.named_parameters());
}

std::int64_t WholeModel::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters()) {
    const auto found = divided_.placements.find(parameter.name);
    count += c10::multiply_integers(found == divided_.placements.end() ? parameter.shape : found->second.shape);
  }
  return count;
}

std::set<std::string> WholeModel::elsewhere(const std::function<bool(const std::string&)>& updates) const {
  std::set<std::string> names;
  for (const auto& parameter : parameters()) names.insert(parameter.name);
  for (const auto& [name, parameter] : part_.named_parameters()) {
    if (updates(name)) names.erase(name);
  }
  if (pipeline_ == nullptr) return names;
  for (const auto& buffer : pipeline_->buffers()) names.insert(buffer.name);
  for (const auto& [name, buffer] : part_.named_buffers()) names.erase(name);
  return names;
}

// Returns the whole tensor on the first rank of `parts`, the ranks that have the parts of one replica. The tensor is a
// sum: each element comes from one rank, and all other ranks add zero.
at::Tensor WholeModel::gathered(const Pipeline::Whole& tensor, const CommunicatorPtr& parts) const {
  const bool expert = divided_.is_expert(tensor.name);
  const auto found = divided_.placements.find(tensor.name);
  const bool divided = found != divided_.placements.end();
  bool mine = pipeline_ == nullptr || pipeline_->first_holder(tensor.name);
  mine &= (divided && !expert) || mesh_.position(Axis::kTensor) == 0;
  mine &= expert || mesh_.position(Axis::kExpert) == 0;
  at::Tensor own;
  if (mine) {
    for (const auto& named : {part_.named_parameters(), part_.named_buffers()}) {
      for (const auto& [name, values] : named) own = name == tensor.name ? values : own;
    }
  }
  at::Tensor all = at::zeros(divided ? found->second.shape : tensor.shape, at::TensorOptions().dtype(tensor.dtype));
  if (mine && divided) {
    found->second.put(all, own.to(at::kCPU));
  } else if (mine) {
    all.copy_(own);
  }
  parts->reduce(all, Reduction::kSum, 0).wait();
  return all;
}

NamedTensors WholeModel::gather(bool wanted) const {
  NamedTensors weights;
  constexpr AxisSet kParts{Axis::kPipe, Axis::kTensor, Axis::kExpert};
  const auto& parts = mesh_.group(kParts);  // collective, so all ranks call it
  if (!wanted || mesh_.position(Axis::kData) != 0 || mesh_.position(Axis::kContext) != 0) return weights;
  const at::NoGradGuard no_grad;
  const bool first = mesh_.world()->rank() == 0;
  const NamedTensors own = part_.named_parameters();
  const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
  for (const auto& parameter : parameters()) {
    const bool divided = pipeline_ != nullptr || divided_.placements.contains(parameter.name);
    at::Tensor values = divided ? gathered(parameter, parts) : by_name.at(parameter.name);
    if (first) weights.emplace_back(parameter.name, std::move(values));
  }
  for (const auto& buffer : pipeline_ != nullptr ? pipeline_->buffers() : std::vector<Pipeline::Whole>()) {
    at::Tensor values = gathered(buffer, parts);
    if (first) weights.emplace_back(buffer.name, std::move(values));
  }
  if (first && pipeline_ == nullptr) std::ranges::move(part_.named_buffers(), std::back_inserter(weights));
  return weights;
}

}  // namespace phalanx
