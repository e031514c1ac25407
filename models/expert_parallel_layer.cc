// SPDX-License-Identifier: Apache-2.0
#include "models/expert_parallel_layer.h"

#include <utility>

#include "framework/base/error.h"

namespace phalanx {

Placements partition_experts(torch::nn::Module& network, const CommunicatorPtr& experts, const CommunicatorPtr& batch) {
  Placements placements;
  for (const auto& module : network.named_modules("", /*include_self=*/false)) {
    auto* const layer = dynamic_cast<ExpertParallelLayer*>(module.value().get());
    if (layer == nullptr) continue;
    try {
      for (auto& [name, placement] : layer->partition_experts(experts, batch)) {
        placements.emplace(module.key() + "." + name, std::move(placement));
      }
    } catch (const ConfigError& error) {
      throw ConfigError("the layer " + module.key() + " " + error.what());
    }
  }
  return placements;
}

std::string counts_over_batch(const torch::nn::Module& network) {
  for (const auto& module : network.modules(/*include_self=*/false)) {
    if (const auto* const layer = dynamic_cast<const ExpertParallelLayer*>(module.get())) {
      return layer->counts_over_batch();
    }
  }
  return "";
}

}  // namespace phalanx
