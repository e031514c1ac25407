// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/collectives/selection/topology.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {

/// Returns the registered name of the backend that connect() uses. Throws ConfigError for an unknown name.
std::string choose_backend(const std::string& wanted, const LaunchEnvironment& launched);

/// Settings with which ranks connect. All ranks have the same, except for `met`.
struct ConnectSettings {
  Seconds timeout{600};
  std::optional<bool> progress_thread{};  // as in ConnectOptions
  std::string interface{};                // framework.interface; empty: set by a variable, or derived from routes
  std::vector<Key> levels{};              // as in ConnectOptions
  std::vector<int> numbers{};             // as in ConnectOptions
  std::string config{};                   // as YAML, which must be the same on all ranks; empty: there is none
  std::function<void()> check{};          // as in ConnectOptions; not called any more after connecting
  std::optional<Rendezvous> met{};        // the rendezvous, if it has already taken place (resolve_local_rank())
};

/// Connects this process to the others that its launcher started. `backend` is a registered name or "auto", which
/// selects the fastest backend that reaches all ranks: inproc for a single rank, shm on one host, hybrid between hosts.
/// Collective. Throws ConfigError for a backend that is unknown or cannot connect these ranks, StartMismatch if ranks
/// have different versions or configs, CommError if peers do not arrive.
CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout,
                        std::optional<bool> progress_thread = {});

/// Does the same for several backends, with one rendezvous, and returns one communicator per backend, all with the same
/// ranks.
std::vector<CommunicatorPtr> connect_all(const std::vector<std::string>& backends, const LaunchEnvironment& launched,
                                         ConnectSettings settings);

/// Returns the topology of a world connected by `backend`, with the version of MPI if it uses MPI. Collective.
Topology world_topology(Communicator& world, const std::string& backend);

}  // namespace phalanx
