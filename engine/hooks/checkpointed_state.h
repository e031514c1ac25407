// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/checkpoint/run_state.h"
#include "engine/hooks/checkpointed_run.h"

namespace phalanx {

/// Returns the state of a run that checkpoints save: that of the replica, `parts`, and random numbers, running
/// statistics, schedule and strategy. `slices` are those of the optimizer. `same_setup`: the run resumes one with the
/// same ranks, strategy and buckets. `replicas_differed`: replicas or their gradients have differed at some time, saved
/// and restored as well. The arguments other than `slices` and `parts` must outlive the state.
RunState checkpointed_state(const CheckpointedRun& run, const std::vector<Slice>& slices,
                            std::vector<CheckpointPart> parts, const bool& same_setup, bool& replicas_differed);

}  // namespace phalanx
