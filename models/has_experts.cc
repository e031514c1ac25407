// SPDX-License-Identifier: Apache-2.0
#include "models/has_experts.h"

#include "models/expert_parallel.h"
#include "models/network.h"

namespace phalanx {

namespace {

// Returns one of the model's expert layers, all of which have the same options, or null.
const ExpertParallel* expert_layer(const Model& model) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  if (network == nullptr) return nullptr;
  for (const auto& module : network->modules()) {
    if (const auto* const layer = dynamic_cast<const ExpertParallel*>(module.get())) return layer;
  }
  return nullptr;
}

}  // namespace

bool has_experts(const Model& model) { return expert_layer(model) != nullptr; }

std::string counts_over_batch(const Model& model) {
  const auto* const layer = expert_layer(model);
  return layer == nullptr ? "" : layer->counts_over_batch();
}

std::string refusal_of_parts(const std::string& model, const std::string& options) {
  return "computes a batch in parts, but " + options + " of model " + model +
         " depends on where all tokens of the batch go, which is not yet known when its first part is computed; set "
         "model.count_over: sequence, which counts each sequence separately";
}

}  // namespace phalanx
