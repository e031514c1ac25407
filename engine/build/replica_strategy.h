// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "engine/build/flatten.h"
#include "engine/build/partition.h"
#include "engine/build/resolved_settings.h"
#include "engine/config/experiment_config.h"
#include "engine/strategies/invariant.h"
#include "engine/strategies/strategy.h"
#include "engine/strategies/unused_parameters.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// The strategy of a replica, for all groups of its parameters. What its pointers refer to does not move.
struct ReplicaStrategy {
  std::unique_ptr<Strategy> strategy;
  Invariant* invariant = nullptr;            // the strategy with determinism: world_size_invariant; otherwise null
  std::unique_ptr<UnusedParameters> unused;  // finds parameters that no rank has used in a step
};

/// Makes the strategy and connects it to its parameter servers. `servers`: the parameter servers of the run, or
/// null. `local_gradients`: see StrategyContext. Collective. Throws ConfigError if the strategy does not fit the ranks.
ReplicaStrategy build_strategy(const ExperimentConfig& config, const PartitionedModel& part,
                               const ResolvedSettings& settings, const FlatModel& flat,
                               const std::shared_ptr<ps::CurrentServers>& servers,
                               const std::function<void(const at::Tensor&)>& local_gradients = {});

}  // namespace phalanx
