// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Zeroed memory of this process alone: for backends that move all memory alike and whose ranks have none in common.
/// Throws ConfigError, which says what to do, where several ranks ask to share it.
at::Tensor plain_memory(const Communicator& group, const Allocation& allocation);

/// Throws ConfigError, which says what to do, unless the ranks have memory in common (Communicator::shares_memory()).
void require_shared_memory(const Communicator& group);

}  // namespace phalanx
