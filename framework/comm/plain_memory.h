// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Returns zeroed memory of this process. For backends that move all memory at the same speed and whose ranks share
/// none. Throws a ConfigError that says what to do if several ranks ask to share the memory.
at::Tensor plain_memory(const Communicator& group, const Allocation& allocation);

/// Throws a ConfigError that says what to do, unless the ranks can share memory (Communicator::shares_memory()).
void require_shared_memory(const Communicator& group);

}  // namespace phalanx
