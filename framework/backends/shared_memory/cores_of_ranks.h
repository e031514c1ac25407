// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {

/// Returns the number of cores that the ranks of this host may use together: the union of the cores that the calling
/// thread of each rank may use. Ranks bound to separate cores count as many cores as ranks, and ranks under taskset
/// count the cores of its mask. Collective: each rank calls this in its own thread, with a `key` of the store that only
/// they use.
int cores_of_ranks(Store& store, const std::string& key, int rank, int size);

}  // namespace phalanx::shared_memory
