// SPDX-License-Identifier: Apache-2.0
#include "engine/build/shared_statistics.h"

#include <ATen/core/grad_mode.h>

#include <vector>

#include "models/model.h"

namespace phalanx {

NamedTensors shared_buffers(const Model& model, Communicator& group) {
  const at::NoGradGuard no_grad;
  NamedTensors shared;
  std::vector<Work> works;
  for (const auto& [name, buffer] : model.named_buffers()) {
    shared.emplace_back(name, buffer.clone());
    if (buffer.is_floating_point()) works.push_back(group.all_reduce(shared.back().second, Reduction::kMean));
  }
  wait_all(works);
  return shared;
}

SharedStatistics::SharedStatistics(const Model& model, Communicator& group) : own_(model.buffers()) {
  const at::NoGradGuard no_grad;
  const auto buffers = model.buffers();
  const auto shared = shared_buffers(model, group);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(shared[i].second);
}

}  // namespace phalanx
