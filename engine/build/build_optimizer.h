// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/build/flatten.h"
#include "engine/build/partition.h"
#include "engine/build/training_turns.h"
#include "engine/config/experiment_config.h"
#include "engine/optim/optimizer.h"
#include "engine/strategies/strategy.h"

namespace phalanx {

/// Returns the optimizer of a replica, without the wrappers of ParameterUpdate: the config's, or the strategy's if
/// parameter servers update the parameters. An optimizer of whole matrices gathers matrices that are sharded between
/// ranks.
///
/// `turns` must outlive the optimizer. Collective. Throws ConfigError for an optimizer that cannot update the
/// parameters of this replica.
std::unique_ptr<Optimizer> build_optimizer(const ExperimentConfig& config, const PartitionedModel& part,
                                           TrainingTurns& turns, const FlatModel& flat, Strategy& strategy);

}  // namespace phalanx
