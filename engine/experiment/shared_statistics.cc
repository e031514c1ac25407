#include "engine/experiment/shared_statistics.h"

#include <ATen/core/grad_mode.h>

#include "models/model.h"

namespace phalanx {

SharedStatistics::SharedStatistics(const Model& model, Communicator& group) {
  const at::NoGradGuard no_grad;
  std::vector<Work> works;
  for (const auto& buffer : model.buffers()) {
    if (!buffer.is_floating_point()) continue;
    own_.emplace_back(buffer, buffer.clone());
    works.push_back(group.all_reduce(buffer, Reduction::kMean));
  }
  wait_all(works);
}

SharedStatistics::~SharedStatistics() {
  const at::NoGradGuard no_grad;
  for (const auto& [buffer, own] : own_) buffer.copy_(own);
}

}  // namespace phalanx
