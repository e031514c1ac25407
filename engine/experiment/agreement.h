// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/experiment/config.h"
#include "engine/sync/synchronizers.h"
#include "engine/watch/run_folder.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// By what the replicas of a run agree, with what the config leaves to the program ("auto") filled in.
struct Agreement {
  Synchronizers::Choice strategy;
  std::int64_t bucket_bytes = 0;  // how large buckets of parameters are
};

/// For "auto" the strategy is what suits where the replicas' ranks are (suitable_strategy()); with determinism:
/// world_size_invariant, which has a way of its own, all_reduce. For framework.bucket_bytes: default the size is
/// default_bucket_bytes(). For auto it is what suits an all-reduce of the replicas (best_bucket_bytes()), which is
/// measured; or, as other buckets may round otherwise, what it was in the checkpoint from which the run resumes, if
/// that is of as many ranks and the same strategy. `parameters`: bytes of all of them. Collective; all ranks return the
/// same.
Agreement choose_agreement(const ExperimentConfig& config, const RunFolder& folder, std::int64_t parameters,
                           const Mesh& mesh);

/// For a checkpoint: a run goes on alike only where it is the same.
std::string describe(const Agreement& agreement, const ExperimentConfig& config);

}  // namespace phalanx
