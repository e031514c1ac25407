// SPDX-License-Identifier: Apache-2.0
#include "engine/build/flatten.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "engine/build/updaters.h"
#include "framework/base/error.h"
#include "framework/base/named_tensors.h"
#include "models/block_chain.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

// Throws ConfigError on all ranks if one of them has nothing to update: it would not take part in operations of the
// other ranks.
void refuse_idle_ranks(const PartitionedModel& part, bool idle) {
  const at::Tensor any = at::full({1}, idle ? 1 : 0, at::kLong);
  part.mesh.control()->all_reduce(any, Reduction::kMax).wait();
  if (any.item<std::int64_t>() == 0) return;
  throw ConfigError(
      "mesh.tensor: parameter servers have each parameter once, so the first rank of the axis updates the parameters "
      "that all of its ranks share. These are all parameters that are trained" +
      std::string(part.pipeline ? " in one of the stages" : "") +
      ", and the other ranks would have nothing to update; divide more layers (plan), or use another strategy");
}

// Experts come last. A bucket cannot hold both experts and other parameters, so the order of the blocks, in which the
// two alternate, would lead to many small buckets.
NamedTensors updated_parameters(const PartitionedModel& part, const StrategyTraits& strategy) {
  NamedTensors parameters = trainable_parameters(*part.model);
  const bool any = !parameters.empty();
  const Updaters updaters(part, strategy);
  std::erase_if(parameters, [&](const auto& named) { return !updaters.updates(named.first); });
  if (strategy.parameter_servers && part.mesh.along(Axis::kTensor)->size() > 1) {
    refuse_idle_ranks(part, any && parameters.empty());
  }
  std::ranges::stable_partition(parameters, [&](const auto& named) { return !part.is_expert(named.first); });
  return parameters;
}

// Returns the number of the block of each parameter that belongs to one. Parameters of several blocks have the number
// of blocks.
std::map<std::string, std::size_t> blocks_of_parameters(const std::vector<Block>& blocks) {
  std::map<std::string, std::size_t> block_of;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const auto& name : blocks[i].parameters) {
      const auto [at, first] = block_of.emplace(name, i);
      if (!first) at->second = blocks.size();
    }
  }
  return block_of;
}

// Parameters of several blocks and parameters of no block are in separate buckets.
FlatParameters::GroupOf by_block(const ExperimentConfig& config, const PartitionedModel& part) {
  const auto* const chain = as<BlockChain>(*part.model);
  if (chain == nullptr) {
    throw ConfigError("strategy.stage: 3 gathers the parameters of one block of the model after the other, and model " +
                      config.model.selected() + " is not a chain of blocks, as these are: " +
                      models_with(&ModelTraits::block_chain) + "; use stage: 2");
  }
  auto block_of = blocks_of_parameters(chain->blocks());
  const auto none = chain->blocks().size() + 1;
  return [&part, block_of = std::move(block_of), none](const std::string& name) {
    const auto found = block_of.find(name);
    return 2 * (found == block_of.end() ? none : found->second) + part.experts.count(name);
  };
}

FlatParameters::GroupOf by_turn(const PartitionedModel& part, const TrainingTurns& turns) {
  return [&part, &turns](const std::string& name) { return 2 * turns.of(name) + part.experts.count(name); };
}

}  // namespace

FlatModel flatten(const ExperimentConfig& config, const PartitionedModel& part, const ResolvedSettings& settings,
                  const TrainingTurns& turns) {
  const auto strategy = settings.strategy.traits();
  const NamedTensors parameters = updated_parameters(part, strategy);
  const auto group_of = strategy.shards_values ? by_block(config, part) : by_turn(part, turns);
  Communicator& replicas = *part.mesh.replicas();
  const int parts = strategy.shards_update ? replicas.size() : 1;
  FlatParameters flat(parameters, replicas, settings.bucket_bytes, parts, group_of);
  auto groups =
      data_parallel_groups(part.mesh, flat, [&part](const std::string& name) { return part.is_expert(name); });
  return {.parameters = std::move(flat), .groups = std::move(groups), .parts = parts};
}

}  // namespace phalanx
