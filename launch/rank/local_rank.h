// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {

/// A launch environment whose local rank and size are known, and the rendezvous if one was necessary to find them.
struct ResolvedLaunch {
  LaunchEnvironment launched;
  std::optional<Rendezvous> met{};  // for connect_all(), since there is only one rendezvous; absent: none was necessary
};

/// Returns `launched` with the rank's number among the ranks of its host. RANK and WORLD_SIZE, with or without
/// LOCAL_RANK, do not tell how many ranks share a host (LaunchEnvironment::knows_local_rank). In that case all ranks
/// leave their host_key() in the store, and ranks with equal keys are numbered in the order of LOCAL_RANK, if it is
/// set, and of rank. The function is then collective, and throws like rendezvous() and Store::get().
ResolvedLaunch resolve_local_rank(const LaunchEnvironment& launched, Seconds timeout);

/// Does the same for ranks that have met already, and whatever `launched` says of their local ranks.
ResolvedLaunch resolve_local_rank(const LaunchEnvironment& launched, Rendezvous met);

}  // namespace phalanx
