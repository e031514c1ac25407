// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/collectives/selection/topology.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// Returns the registered name of the backend that connect() uses. Throws ConfigError for an unknown name.
std::string choose_backend(const std::string& wanted, const LaunchEnvironment& launched);

/// Connects this process to the others that its launcher started. `backend` is a registered name or "auto", which
/// selects the fastest backend that reaches all ranks: inproc for a single rank, shm on one host; between hosts, gloo
/// if the launcher provides a rendezvous address, as torchrun does, otherwise mpi. Collective. Throws ConfigError for a
/// backend that is unknown or cannot connect these ranks, CommError if peers do not arrive. `progress_thread`: as in
/// ConnectOptions.
CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread = {});

/// Does the same for several backends, with one rendezvous, and returns one communicator per backend, all with the same
/// ranks. `rendezvous_store` is the store if the rendezvous has already taken place (resolve_local_rank()). `levels`:
/// as in ConnectOptions.
std::vector<CommunicatorPtr> connect_all(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                                         Seconds timeout, std::optional<bool> progress_thread = {},
                                         StorePtr rendezvous_store = nullptr, const std::vector<Key>& levels = {});

/// Returns the topology of a world connected by `backend`, with the version of MPI if it uses MPI. Collective.
Topology world_topology(Communicator& world, const std::string& backend);

}  // namespace phalanx
