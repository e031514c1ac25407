// SPDX-License-Identifier: Apache-2.0
#include "engine/build/build_optimizer.h"

#include <string>

#include "engine/optim/matrix_exchange.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Makes an optimizer of whole parameters gather their parts from other ranks, or throws ConfigError if it cannot.
void gather_parts(const ExperimentConfig& config, const PartitionedModel& part, const FlatModel& flat,
                  Optimizer& optimizer) {
  constexpr AxisSet kPartsAndReplicas{Axis::kData, Axis::kTensor, Axis::kExpert, Axis::kContext};
  const auto& group = part.mesh.group(kPartsAndReplicas);  // collective, so all ranks call it
  if (optimizer.cut() == Cut::kAnywhere) return;
  if (auto* const gathers = dynamic_cast<GathersMatrices*>(&optimizer)) {
    const auto options = flat.parameters.buckets().at(0).values.options();
    return gathers->gather_by(std::make_unique<MatrixExchange>(group, part.placements, options));
  }
  throw ConfigError(
      std::string("mesh.") + (part.mesh.along(Axis::kTensor)->size() > 1 ? "tensor" : "expert") + ": optimizer " +
      config.optimizer.selected() +
      " needs whole parameters, but each rank has only a part of them; use muon, which gathers them unless a task "
      "trains in turns, or one that updates each element on its own, such as adamw");
}

}  // namespace

std::unique_ptr<Optimizer> build_optimizer(const ExperimentConfig& config, const PartitionedModel& part,
                                           TrainingTurns& turns, const FlatModel& flat, Strategy& strategy) {
  if (auto* const servers = strategy.extensions().updates_on_servers) {
    if (!turns.any()) return servers->make_optimizer();
    throw ConfigError("strategy: servers that update the parameters cannot do so in turns; let the ranks update them");
  }
  auto optimizer = turns.make_optimizer();
  if (!part.placements.empty()) gather_parts(config, part, flat, *optimizer);
  return optimizer;
}

}  // namespace phalanx
