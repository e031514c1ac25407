// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "engine/build/replica.h"
#include "engine/strategies/replica_check.h"
#include "framework/partition/slice.h"

namespace phalanx {

/// Returns everything of a replica that other ranks have copies of, for a ReplicaCheck:
///
///   parameters       unless each value is on one rank only, or in memory that all ranks share; frozen ones, too
///   optimizer state  if every rank updates all parameters with the same gradients
///   buffers          without batch norm statistics, unless all ranks have the same ones
///
/// `slices`: the slices that the optimizer updates (Engine::slices). `replica` and `slices` must outlive the result.
/// `same_statistics`: batch norm uses the samples of all ranks (train.sync_batch_norm). Collective.
std::vector<ReplicatedTensors> replicated_tensors(const Replica& replica, const std::vector<Slice>& slices,
                                                  bool same_statistics);

}  // namespace phalanx
