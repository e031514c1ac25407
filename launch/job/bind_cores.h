// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/config/experiment_config.h"
#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// Tells who decided which cores this process may use.
enum class CoresFrom {
  kPhalanx,   // Phalanx started the ranks: all ranks of this host may use the same cores
  kLauncher,  // another launcher, which may have bound each rank to its own cores
};

/// Binds this thread, and threads that it starts later, as launch.bind_to specifies, and sets LibTorch's number of
/// threads to launch.threads. Returns a description for the log: "computes with 2 threads, bound to cores 0-1". Must be
/// called before the rank has other threads. Throws ConfigError if there are fewer cores than ranks that need one each,
/// if another launcher or a container has restricted this rank to some of the host's cores, which may already be
/// exclusive to it, or if the kernel refuses.
std::string bind_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from);

}  // namespace phalanx
