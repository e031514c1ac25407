#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/collectives/selection/topology.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// The registered name of the backend that connect() takes. Throws ConfigError for one that is not there.
std::string choose_backend(const std::string& wanted, const LaunchEnvironment& launched);

/// Connects this process to the others that its launcher started. `backend` is a registered name, or "auto": the
/// fastest that reaches all ranks (inproc for one; shm on one host; on several gloo where the launcher says where ranks
/// meet, as torchrun does, else mpi). Collective. Throws ConfigError for a backend that is not there or cannot connect
/// these ranks, CommError when peers do not come. `progress_thread`: as in ConnectOptions.
CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread = {});

/// The same by several backends, which meet in one place: a communicator of the same ranks for each. `met`: the store
/// of ranks that have met there already (find_local_rank()).
std::vector<CommunicatorPtr> connect_all(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                                         Seconds timeout, std::optional<bool> progress_thread = {},
                                         StorePtr met = nullptr);

/// The topology of a world that `backend` connects, with the version of MPI where that uses it. Collective.
Topology world_topology(Communicator& world, const std::string& backend);

}  // namespace phalanx
