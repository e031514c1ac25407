// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// What a backend needs to connect this rank to its world.
struct ConnectOptions {
  RankInfo rank_info;
  StorePtr store;        // reaches all ranks; may be null for a backend that brings its own launcher (mpi)
  Seconds timeout{600};  // of every operation of the world and of what is split from it

  /// Whether a thread of its own runs the operations that are launched, while this rank computes. Absent: where this
  /// process may use more cores than its host has ranks; otherwise it would only take the cores from them.
  std::optional<bool> progress_thread{};
};

bool wants_progress_thread(const ConnectOptions& options);

/// Backends by name. A factory is collective: it returns when all ranks are connected, and throws CommError (or
/// ConfigError where this backend can never connect these ranks) otherwise.
using Backends = Registry<CommunicatorPtr(const ConnectOptions&)>;

}  // namespace phalanx
