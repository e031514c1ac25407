// SPDX-License-Identifier: Apache-2.0
#include "engine/build/updaters.h"

#include "models/trainable_parameters.h"

namespace phalanx {

bool Updaters::first_tensor_rank_updates(const std::string& parameter) const {
  return servers_ && part_.mesh.along(Axis::kTensor)->size() > 1 && part_.same_along_tensor(parameter);
}

bool Updaters::updates(const std::string& parameter) const {
  if (part_.pipeline && !part_.pipeline->updates(parameter)) return false;
  return !first_tensor_rank_updates(parameter) || part_.mesh.position(Axis::kTensor) == 0;
}

bool Updaters::several_stages_update(const std::string& parameter) const {
  return part_.pipeline && part_.pipeline->updaters(parameter) > 1;
}

std::vector<at::Tensor> Updaters::of_first_tensor_rank() const {
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : trainable_parameters(*part_.model)) {
    const bool of_stage = !part_.pipeline || part_.pipeline->updates(name);
    if (of_stage && first_tensor_rank_updates(name)) parameters.push_back(parameter);
  }
  return parameters;
}

Clip::Parts Updaters::parts_of_norm() const {
  return {.count = part_.experts.empty() ? 1u : 2u,
          .of = [updaters = *this](const std::string& name) { return updaters.part_.experts.count(name); },
          .share =
              [updaters = *this](const std::string& name) {
                const auto& part = updaters.part_;
                const bool copies = part.same_along_tensor(name) && !updaters.first_tensor_rank_updates(name);
                const int tensor_ranks = copies ? part.mesh.along(Axis::kTensor)->size() : 1;
                return 1.0 / (tensor_ranks * (part.pipeline ? part.pipeline->updaters(name) : 1));
              }};
}

}  // namespace phalanx
