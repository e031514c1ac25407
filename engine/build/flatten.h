// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/build/partition.h"
#include "engine/build/resolved_settings.h"
#include "engine/build/training_turns.h"
#include "engine/config/experiment_config.h"
#include "engine/strategies/data_parallel_groups.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// The parameters that a rank updates, in buckets. Parameters of experts are in the last buckets.
struct FlatModel {
  FlatParameters parameters;
  std::vector<DataParallelGroup> groups;  // the same buckets, grouped by the ranks that have copies of them
  std::int64_t parts = 1;  // equal parts into which buckets can be divided: one per rank if ranks update shards of them
};

/// Moves the parameters that this rank updates into buckets, in the memory of the model's device. A bucket has
/// parameters of one turn, and either experts or other parameters. If the strategy has values only while a block needs
/// them, a bucket has parameters of one block.
///
/// Collective. Throws ConfigError, on all ranks, if one of them would have nothing to update, and if the strategy needs
/// blocks and the model has none.
FlatModel flatten(const ExperimentConfig& config, const PartitionedModel& part, const ResolvedSettings& settings,
                  const TrainingTurns& turns);

}  // namespace phalanx
