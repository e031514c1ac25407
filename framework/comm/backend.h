// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

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
};

bool wants_progress_thread(const ConnectOptions& options);

/// Backends by name. A factory is collective: it returns when all ranks are connected. Otherwise it throws CommError,
/// or ConfigError if this backend can never connect these ranks.
using Backends = Registry<CommunicatorPtr(const ConnectOptions&)>;

}  // namespace phalanx
