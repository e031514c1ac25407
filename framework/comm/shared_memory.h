#pragma once

#include "framework/comm/communicator.h"

namespace phalanx {

/// Throws ConfigError, which says what to do, where the ranks have no memory in common.
void refuse_shared_memory(const Communicator& group);

}  // namespace phalanx
