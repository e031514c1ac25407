// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/store.h"

namespace phalanx::shared_memory {

/// How many cores the ranks of this host may run on together: those that the calling thread of any of them may use. So
/// ranks that were bound to cores of their own count as many as they are, and those under taskset the cores that it
/// leaves them. Collective: `key` of the store is theirs, and each calls this in its own thread.
int cores_of_ranks(Store& store, const std::string& key, int rank, int size);

}  // namespace phalanx::shared_memory
