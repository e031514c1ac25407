#include "engine/experiment/shared_statistics.h"

#include <ATen/core/grad_mode.h>

#include "models/model.h"

namespace phalanx {

NamedTensors shared_buffers(const Model& model, Communicator& group) {
  const at::NoGradGuard no_grad;
  NamedTensors shared;
  std::vector<Work> works;
  for (const auto& [name, buffer] : named_buffers(model)) {
    shared.emplace_back(name, buffer.clone());
    if (buffer.is_floating_point()) works.push_back(group.all_reduce(shared.back().second, Reduction::kMean));
  }
  wait_all(works);
  return shared;
}

SharedStatistics::SharedStatistics(const Model& model, Communicator& group) {
  const at::NoGradGuard no_grad;
  const auto shared = shared_buffers(model, group);
  for (std::size_t i = 0; const auto& buffer : model.buffers()) {
    own_.emplace_back(buffer, buffer.clone());
    buffer.copy_(shared[i++].second);
  }
}

SharedStatistics::~SharedStatistics() {
  const at::NoGradGuard no_grad;
  for (const auto& [buffer, own] : own_) buffer.copy_(own);
}

}  // namespace phalanx
