// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/build/partition.h"
#include "engine/config/experiment_config.h"
#include "engine/run_folder.h"
#include "engine/strategies/strategies.h"

namespace phalanx {

/// The settings that all replicas of a run must share, with every "auto" of the config resolved.
struct ResolvedSettings {
  Strategies::Choice strategy;
  std::int64_t bucket_bytes = 0;  // size of the buckets of parameters
};

/// Resolves the strategy and the bucket size of a run on `device`. Collective; all ranks return the same. `folder` may
/// have checkpoints of the run.
///
/// Strategy "auto" becomes the one that suits the placement of the replicas' ranks (suitable_strategy()), or all_reduce
/// with determinism: world_size_invariant, which reduces gradients by its own algorithm.
///
/// The bucket size follows framework.bucket_bytes. `default` means default_bucket_bytes(). `auto` means
/// best_bucket_bytes() for a measured all-reduce of the replicas. However, buckets of another size may round
/// differently, so a run that resumes from a checkpoint keeps the checkpoint's size if the number of ranks and the
/// strategy are unchanged.
ResolvedSettings resolve_settings(const ExperimentConfig& config, const RunFolder& folder, const PartitionedModel& part,
                                  c10::Device device);

/// Returns the text that a checkpoint stores. A resumed run can only reproduce the same bits if its own text is equal.
std::string describe(const ResolvedSettings& settings, const ExperimentConfig& config);

}  // namespace phalanx
