#pragma once

#include <cstdint>
#include <string>

#include "engine/experiment/config.h"
#include "engine/experiment/run_folder.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// How large buckets of parameters are: framework.bucket_bytes. For "auto" it is what suits an all-reduce of this group
/// (best_bucket_bytes()), which is measured; or, as other buckets may round otherwise, what it was in the checkpoint
/// with which the run goes on, if that is of as many ranks and the same strategy. `parameters`: bytes of all of them.
/// Collective; all ranks return the same.
std::int64_t choose_bucket_bytes(const ExperimentConfig& config, const RunFolder& folder, std::int64_t parameters,
                                 Communicator& group);

/// By what replicas agree, for a checkpoint: a run goes on alike only where it is the same.
std::string describe_strategy(const ExperimentConfig& config, std::int64_t bucket_bytes);

}  // namespace phalanx
