// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/experiment/config.h"
#include "framework/comm/launch_environment.h"

namespace phalanx {

/// Who decided which cores this process may use.
enum class CoresFrom {
  kUs,        // Phalanx has started the ranks: all of this host may use the same ones
  kLauncher,  // another launcher, which may have bound each rank to cores of its own
};

/// Binds this thread and those it starts later as launch.bind_to says, and gives LibTorch as many threads as
/// launch.threads says. Returns a description for the log: "computes with 2 threads, bound to cores 0-1". Call it
/// before the rank has other threads. Throws ConfigError if there are fewer cores than ranks that want one each, if
/// another launcher or a container has restricted this rank to some of the host's cores, which may already be its own,
/// and if the kernel refuses.
std::string take_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from);

}  // namespace phalanx
