// SPDX-License-Identifier: Apache-2.0
#include "engine/build/replica_strategy.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/build/updaters.h"
#include "engine/config/topology_config.h"
#include "engine/strategies/grouped_strategy.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

std::unique_ptr<Invariant> make_invariant(const ExperimentConfig& config, const Mesh& mesh,
                                          const std::function<void(const at::Tensor&)>& local_gradients) {
  const auto shards = config.train.virtual_shards;
  const auto ranks = mesh.batch()->size();
  if (shards % ranks != 0) {
    throw ConfigError("train.virtual_shards: " + std::to_string(shards) + " cannot be divided among " +
                      std::to_string(ranks) + " ranks; use a multiple");
  }
  return std::make_unique<Invariant>(mesh.replicas(), static_cast<int>(shards), local_gradients);
}

}  // namespace

ReplicaStrategy build_strategy(const ExperimentConfig& config, const PartitionedModel& part,
                               const ResolvedSettings& settings, const FlatModel& flat,
                               const std::shared_ptr<ps::CurrentServers>& servers,
                               const std::function<void(const at::Tensor&)>& local_gradients) {
  ReplicaStrategy strategy;
  const auto& train = config.train;
  if (config.determinism == "world_size_invariant") {
    auto invariant = make_invariant(config, part.mesh, local_gradients);
    strategy.invariant = invariant.get();
    strategy.strategy = std::move(invariant);
  } else {
    // With replicas in threads, or parameters that several ranks of a pipeline have, gradients are complete only after
    // the last backward.
    const bool complete_at_end = train.data_parallel > 1 || part.pipeline;
    const auto topology = [levels = config.framework.topology, rank = part.mesh.world()->rank()] {
      return level_keys(levels, rank);
    };
    std::vector<GroupedStrategy::Member> members;
    for (const auto& of : flat.groups) {
      members.push_back({of, make_strategy(settings.strategy, {.mesh = part.mesh,
                                                               .group = of.group,
                                                               .backwards = complete_at_end ? 0 : train.accumulate,
                                                               .servers = servers,
                                                               .timeout = Seconds(config.framework.timeout),
                                                               .local_gradients = local_gradients,
                                                               .topology = topology})});
    }
    strategy.strategy =
        members.size() == 1 ? std::move(members[0].strategy) : std::make_unique<GroupedStrategy>(std::move(members));
  }
  // A parameter that several stages of a pipeline have always counts as used, since its gradient may come from another
  // stage.
  const Updaters updaters(part, settings.strategy.traits());
  strategy.unused = std::make_unique<UnusedParameters>(
      flat.groups, [&](const std::string& name) { return updaters.several_stages_update(name); });
  return strategy;
}

}  // namespace phalanx
