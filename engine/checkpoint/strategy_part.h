// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/strategies/strategy.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// Returns the checkpoint part with the state that a strategy keeps from step to step (Strategy::state()).
///
/// `same_setup` is read at load: true if the checkpoint has the same number of ranks, strategy and buckets. Then each
/// rank gets its state back. From any other checkpoint it only gets the state that is the same on all ranks with a
/// parameter, however the parameter was sharded between ranks there and is sharded here. The rest starts from its
/// initial state. `placements`: the placements of the parameters of which this rank has a part. All arguments must
/// outlive the part.
CheckpointPart strategy_part(Strategy& strategy, int rank, const Placements& placements, const bool& same_setup);

}  // namespace phalanx
