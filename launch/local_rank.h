// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// What a rank knows after the ranks have met; null store: they had no need to yet.
struct Met {
  LaunchEnvironment launched;
  StorePtr store;  // for connect_all(): they meet once
};

/// `launched`, with the rank's number among those of its host. RANK and WORLD_SIZE, with LOCAL_RANK or without, do not
/// tell how many ranks share a host (LaunchEnvironment::tells_local): then all ranks leave their host_key() in the
/// store, and those of equal keys are numbered in the order of LOCAL_RANK, where it is set, and of rank. Collective
/// then; throws as rendezvous() and Store::get().
Met find_local_rank(const LaunchEnvironment& launched, Seconds timeout);

}  // namespace phalanx
