// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// A rank's knowledge after the ranks have met. The store is null if they did not need to meet yet.
struct ResolvedLaunch {
  LaunchEnvironment launched;
  StorePtr store;  // for connect_all(), since ranks meet only once
};

/// Returns `launched` with the rank's number among the ranks of its host. RANK and WORLD_SIZE, with or without
/// LOCAL_RANK, do not tell how many ranks share a host (LaunchEnvironment::knows_local_rank). In that case all ranks
/// leave their host_key() in the store, and ranks with equal keys are numbered in the order of LOCAL_RANK, if it is
/// set, and of rank. The function is then collective, and throws like rendezvous() and Store::get().
ResolvedLaunch resolve_local_rank(const LaunchEnvironment& launched, Seconds timeout);

}  // namespace phalanx
