// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// The arguments with which a backend connects this rank to its world.
struct ConnectOptions {
  RankInfo rank_info;
  StorePtr store;        // reaches all ranks; may be null for a backend that brings its own launcher (mpi)
  Seconds timeout{600};  // of every operation, in the world and in the groups that are split from it

  /// If true, a separate thread runs the launched operations while this rank computes. If absent, there is such a
  /// thread only if this process may use more cores than its host has ranks; otherwise it would take cores from the
  /// ranks.
  std::optional<bool> progress_thread{};

  /// Is called many times a second, by any thread, while this rank waits for others to connect, and also in later waits
  /// of the world. Throws a CommError to end the wait, which breaks the group, and then throws whenever it is called.
  /// Null: nothing ends these waits before `timeout`. The store has a check of its own. Backends that wait inside a
  /// library (mpi, nccl) do not call it.
  std::function<void()> check{};

  /// The numbers in the job of the ranks of the world, by rank, by which a launcher knows them (host_lease.h). Empty:
  /// the ranks of the world are those of the job.
  std::vector<int> numbers{};

  OwnAddress address{};  // of this host for peers on other hosts; empty: a backend that needs one chooses it

  /// True if MPI's launcher started exactly these ranks, so that MPI can connect them. If absent, the variables of PMIx
  /// and Hydra tell.
  std::optional<bool> launched_by_mpi{};

  /// A pointer to an MPI_Comm of this process, for backend mpi: its ranks form the world, and `rank_info` is not used.
  /// Null: all ranks that MPI's launcher started.
  const void* mpi_communicator = nullptr;

  /// True if `mpi_communicator` is of the standard ABI of MPI 5.0 (mpi_abi.h); otherwise it is one of Open MPI.
  bool mpi_standard_abi = false;

  /// The levels by which the run divides its ranks, coarsest first, with this rank's values. Only backends with
  /// BackendTraits::uses_levels read them. Empty: the backend's own levels.
  std::vector<Key> levels{};
};

bool wants_progress_thread(const ConnectOptions& options);

/// The kinds of worlds that `backend: auto` distinguishes.
enum class WorldKind {
  kOneRank,
  kOneHost,  // several ranks, all on one host
  kHosts     // ranks of several hosts
};

/// Facts that others need to know about a backend before it connects anything. Each backend registers its own; code
/// that has to tell backends apart asks for these facts, never for names.
struct BackendTraits {
  /// Its ranks are threads of one process; those of other backends are processes.
  bool threads = false;

  /// The ranks that read and write the same memory (Communicator::shares_memory()).
  enum class Memory { kNone, kWithinHosts, kAll };
  Memory shared = Memory::kNone;

  /// MPI connects its ranks: a launcher of MPI must have started them, and it needs no store.
  bool mpi = false;

  /// MPI connects its ranks if there is no store.
  bool mpi_without_store = false;

  /// It connects ranks of any hosts that have a common store. Backend hybrid uses it between hosts without MPI.
  bool connects_hosts = false;

  /// Ranks that are left after a loss can form a new group (Communicator::shrink()).
  bool shrinks = false;

  /// Sends a text of rank 0 to all ranks by other means than a store, and returns it. Null if the backend cannot.
  /// Collective; throws ConfigError and CommError.
  std::string (*broadcast)(const RankInfo& rank_info, const std::string& text, Seconds timeout) = nullptr;

  /// Its collectives work by the levels of ConnectOptions. For other backends, callers wrap the world in a
  /// HierarchicalCommunicator.
  bool uses_levels = false;

  /// The kind of worlds for which `backend: auto` chooses it.
  std::optional<WorldKind> automatic{};

  /// The kind of device whose tensors it takes.
  std::string device = "cpu";

  /// Returns the name and the version of the library that connects the ranks, such as "Open MPI v5.0.6" or
  /// "MPICH 5.0.2", or an empty string if the library is not running. Null if no such library is needed.
  std::string (*library_version)() = nullptr;
};

/// Backends by name. A factory is collective: it returns when all ranks are connected. Otherwise it throws CommError,
/// or ConfigError if this backend can never connect these ranks.
using Backends = Registry<CommunicatorPtr(const ConnectOptions&), BackendTraits>;

/// Returns the traits of the backend `name` with default fields. A name that is not registered, such as "auto", has the
/// default traits.
BackendTraits backend_traits(const std::string& name);

/// Returns the name of the backend that `backend: auto` chooses for such a world. Throws ConfigError if this program
/// has none.
std::string automatic_backend(WorldKind world);

}  // namespace phalanx
