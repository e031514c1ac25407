// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"
#include "framework/partition/slice.h"

namespace phalanx {

// Implementations of Strategy::attach() that make replicas equal. Both are collective and return all buckets.

/// Gives all ranks the values of rank 0.
std::vector<Slice> broadcast_all(const FlatParameters& parameters, Communicator& group);

/// Moves the values of all buckets into memory that all ranks share, with the values of rank 0. Throws ConfigError if
/// the ranks share no memory.
std::vector<Slice> share_memory(const FlatParameters& parameters, Communicator& group);

}  // namespace phalanx
