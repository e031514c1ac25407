#include "models/has_experts.h"

#include <algorithm>

#include "models/expert_parallel.h"
#include "models/network.h"

namespace phalanx {

bool has_experts(const Model& model) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  return network != nullptr && std::ranges::any_of(network->modules(), [](const auto& module) {
           return dynamic_cast<const ExpertParallel*>(module.get()) != nullptr;
         });
}

}  // namespace phalanx
