// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
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

  /// A pointer to an MPI_Comm of this process, for backend mpi: its ranks form the world, and `rank_info` is not used.
  /// Null: all ranks that MPI's launcher started.
  const void* mpi_communicator = nullptr;
};

bool wants_progress_thread(const ConnectOptions& options);

/// The kinds of worlds that `backend: auto` distinguishes.
enum class WorldKind {
  kOneRank,
  kOneHost,           // several ranks, all on one host
  kHosts,             // several hosts, whose ranks reach a common store
  kHostsWithoutStore  // several hosts whose ranks only a launcher of MPI can connect
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

  /// The kind of worlds for which `backend: auto` chooses it.
  std::optional<WorldKind> automatic{};

  /// The kind of device whose tensors it takes.
  std::string device = "cpu";
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
