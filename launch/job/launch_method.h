// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"

namespace phalanx {

/// The methods by which this program starts the ranks of a job.
enum class LaunchMethod { kThreads, kForks, kMpirun, kAgents };

/// Returns how the ranks of a config must be started: by agents on its hosts if launch.with is ssh or srun; by mpirun
/// if the config asks for it, names hosts, or uses a backend whose ranks MPI connects; as threads if there is one rank
/// or if the backend's ranks are threads; and as forks otherwise. Throws ConfigError if launch.with: local excludes
/// mpirun, which the backend needs, or if there are options for an mpirun that is not used. The config must have passed
/// check().
LaunchMethod choose_launch_method(const ExperimentConfig& config);

/// Throws ConfigError if this host has far fewer cores than the config has ranks, unless launch.oversubscribe allows
/// it: the ranks would mostly wait for a core, and block everything else. Accepts any number of ranks if the config
/// names hosts, whose cores are unknown.
void refuse_too_many_ranks(const LaunchConfig& launch);

}  // namespace phalanx
