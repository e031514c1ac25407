// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/slice.h"

namespace phalanx {

// How Synchronizer::attach() makes replicas equal. Both are collective and return all buckets.

/// Gives all ranks the values of rank 0.
std::vector<Slice> broadcast_all(const FlatParameters& parameters, Communicator& group);

/// Moves the values of all buckets into memory that the ranks have in common, with the values of rank 0. Throws
/// ConfigError where they have none.
std::vector<Slice> share_memory(const FlatParameters& parameters, Communicator& group);

}  // namespace phalanx
