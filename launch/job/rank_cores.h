#pragma once

#include <string>

#include "engine/experiment/config.h"
#include "framework/comm/launch_environment.h"

namespace phalanx {

/// Who decides which cores a rank may use before it takes some of them.
enum class CoresFrom {
  kUs,        // Phalanx has started the ranks: all of this host may use the same ones
  kLauncher,  // another launcher, which may have bound each rank to cores of its own
};

/// Binds this thread and those that it starts from now on as launch.bind_to says, and gives LibTorch as many threads as
/// launch.threads says. Returns what it has done, for a log: "computes with 2 threads, bound to cores 0-1". Call before
/// the rank has other threads. Throws ConfigError where there are fewer cores than ranks that want one each, where
/// another launcher, or a container, has left this rank some of the host's cores alone, which may be its own already,
/// and where the kernel refuses.
std::string take_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from);

}  // namespace phalanx
