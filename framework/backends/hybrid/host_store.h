// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "framework/comm/backend.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/store/store.h"

namespace phalanx::hybrid {

/// A store for the ranks of one host. It is a part of the world's store or, if the world has none, a file in a new
/// folder, which the first rank of the host creates and removes.
class HostStore {
 public:
  /// Collective over hosts.intra, and blocking. Throws CommError::kSystem on all of its ranks if no folder can be
  /// created.
  HostStore(const Level& hosts, const ConnectOptions& options);
  ~HostStore() { remove(); }
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  const StorePtr& store() const { return store_; }

  /// Releases the store. Collective over the host, and blocking; no rank may hold store() then.
  void close(Communicator& host);

 private:
  void remove();

  std::filesystem::path folder_;  // on the first rank of the host
  StorePtr store_;
};

}  // namespace phalanx::hybrid
