// SPDX-License-Identifier: Apache-2.0
#include "engine/build/whole_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

std::vector<WholeTensor> whole_parameters(const PartitionedModel& part) {
  return part.pipeline ? part.pipeline->parameters() : described(part.model->named_parameters());
}

// Returns the whole tensor on the first rank of `ranks`, which have the parts of one replica. The tensor is a sum: each
// element comes from one rank, and all other ranks add zero.
at::Tensor gathered(const PartitionedModel& part, const WholeTensor& tensor, Communicator& ranks) {
  const bool expert = part.is_expert(tensor.name);
  const auto found = part.placements.find(tensor.name);
  const bool sharded = found != part.placements.end();
  bool mine = !part.pipeline || part.pipeline->first_holder(tensor.name);
  mine &= (sharded && !expert) || part.mesh.position(Axis::kTensor) == 0;
  mine &= expert || part.mesh.position(Axis::kExpert) == 0;
  at::Tensor own;
  if (mine) {
    for (const auto& named : {part.model->named_parameters(), part.model->named_buffers()}) {
      for (const auto& [name, values] : named) own = name == tensor.name ? values : own;
    }
  }
  at::Tensor all = at::zeros(sharded ? found->second.shape : tensor.shape, at::TensorOptions().dtype(tensor.dtype));
  if (mine && sharded) {
    found->second.put(all, own.to(at::kCPU));
  } else if (mine) {
    all.copy_(own);
  }
  ranks.reduce(all, Reduction::kSum, 0).wait();
  return all;
}

}  // namespace

std::int64_t parameter_count(const PartitionedModel& part) {
  std::int64_t count = 0;
  for (const auto& parameter : whole_parameters(part)) {
    const auto found = part.placements.find(parameter.name);
    count += c10::multiply_integers(found == part.placements.end() ? parameter.shape : found->second.shape);
  }
  return count;
}

std::set<std::string> kept_elsewhere(const PartitionedModel& part, const Updaters& updaters) {
  std::set<std::string> names;
  for (const auto& parameter : whole_parameters(part)) names.insert(parameter.name);
  for (const auto& [name, parameter] : part.model->named_parameters()) {
    if (updaters.updates(name)) names.erase(name);
  }
  if (!part.pipeline) return names;
  for (const auto& buffer : part.pipeline->buffers()) names.insert(buffer.name);
  for (const auto& [name, buffer] : part.model->named_buffers()) names.erase(name);
  return names;
}

NamedTensors gather_whole_model(const PartitionedModel& part, bool wanted) {
  NamedTensors weights;
  constexpr AxisSet kParts{Axis::kPipe, Axis::kTensor, Axis::kExpert};
  Communicator& ranks = *part.mesh.group(kParts);  // collective, so all ranks call it
  if (!wanted || part.mesh.position(Axis::kData) != 0 || part.mesh.position(Axis::kContext) != 0) return weights;
  const at::NoGradGuard no_grad;
  const bool first = part.mesh.world()->rank() == 0;
  const NamedTensors own = part.model->named_parameters();
  const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
  for (const auto& parameter : whole_parameters(part)) {
    const bool sharded = part.pipeline || part.placements.contains(parameter.name);
    at::Tensor values = sharded ? gathered(part, parameter, ranks) : by_name.at(parameter.name);
    if (first) weights.emplace_back(parameter.name, std::move(values));
  }
  for (const auto& buffer : part.pipeline ? part.pipeline->buffers() : std::vector<WholeTensor>()) {
    at::Tensor values = gathered(part, buffer, ranks);
    if (first) weights.emplace_back(buffer.name, std::move(values));
  }
  if (first && !part.pipeline) std::ranges::move(part.model->named_buffers(), std::back_inserter(weights));
  return weights;
}

}  // namespace phalanx
