// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/build/replica.h"
#include "engine/engine.h"
#include "engine/hooks/planned_fault.h"
#include "engine/strategies/replica_check.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Adds the hook by which this rank flips bits, if `fault` is of such a kind (flips_bit()) and of this rank of
/// `world`. `compared`: the tensors that the run compares between replicas. All arguments must outlive the engine. The
/// hook throws Error if the run has no such tensor.
void attach_flip(const PlannedFault& fault, const Replica& replica, const std::vector<ReplicatedTensors>& compared,
                 const CommunicatorPtr& world, Engine& engine);

}  // namespace phalanx
