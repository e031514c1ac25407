#pragma once

#include "framework/comm/communicator.h"

namespace phalanx {

/// For backends whose ranks have no memory in common: throws ConfigError where there is more than one rank.
void refuse_shared_memory(const Communicator& group);

}  // namespace phalanx
