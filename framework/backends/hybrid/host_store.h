// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "framework/comm/backend.h"
#include "framework/comm/communicator.h"
#include "framework/comm/hierarchy.h"
#include "framework/comm/store.h"

namespace phalanx::hybrid {

/// A store for the ranks of one host: a part of the world's, or where it has none, a file in a folder of its own, which
/// the host's first rank makes and removes.
class HostStore {
 public:
  /// Collective over hosts.intra, blocking. Throws CommError::kSystem, on all of its ranks, where there is no folder.
  HostStore(const Level& hosts, const ConnectOptions& options);
  ~HostStore() { remove(); }
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  const StorePtr& store() const { return store_; }

  /// Nobody needs it any more. Collective over the host, blocking; no rank may hold store() then.
  void close(Communicator& host);

 private:
  void remove();

  std::filesystem::path folder_;  // of the host's first rank
  StorePtr store_;
};

}  // namespace phalanx::hybrid
