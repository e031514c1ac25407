// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "engine/build/partition.h"
#include "engine/build/updaters.h"
#include "framework/base/named_tensors.h"

namespace phalanx {

/// Returns the number of elements of all parameters of the whole model.
std::int64_t parameter_count(const PartitionedModel& part);

/// Returns the names of the parameters and buffers of the whole model that this rank does not have, or that other ranks
/// of the replica update.
std::set<std::string> kept_elsewhere(const PartitionedModel& part, const Updaters& updaters);

/// Returns all parameters and buffers of the whole model on rank 0, and nothing on other ranks or unless `wanted`.
/// Tensors that are not sharded share the model's memory. Collective.
NamedTensors gather_whole_model(const PartitionedModel& part, bool wanted);

}  // namespace phalanx
