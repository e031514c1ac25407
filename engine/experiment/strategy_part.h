// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/sync/synchronizer.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// What a strategy keeps from step to step (Synchronizer::state()).
///
/// `alike`: at load, whether the checkpoint is of as many ranks with the same strategy, in the same buckets. Then each
/// rank has its own state back. From any other checkpoint it gets what is alike on all ranks that have a parameter, in
/// whichever parts the ranks had it there and have it here; the rest begins anew. `placements`: of the parameters of
/// which this rank has a part. All must outlive the part.
CheckpointPart strategy_part(Synchronizer& strategy, int rank, const Placements& placements, const bool& alike);

}  // namespace phalanx
