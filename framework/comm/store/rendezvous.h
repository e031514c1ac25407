// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// The store where a process meets its peers, and its rank among them.
struct Rendezvous {
  StorePtr store;
  int rank = 0;
  int size = 1;

  /// The name or address at which this rank has reached the store, and with it rank 0's host. Empty if it is unknown: a
  /// store in a file, or this rank is on that host.
  std::string host{};
};

/// Connects to the store that `url` names. URLs have the form of PyTorch's init_method:
///   env://                                   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT from the environment
///   tcp://host:port?rank=1&world_size=4      rank 0 hosts the store, unless TORCHELASTIC_USE_AGENT_STORE says who does
///   file:///path?rank=1&world_size=4         a file that all ranks see and that does not exist yet
/// If PHALANX_JOB_SECRET is set, or PHALANX_JOB_SECRET_FILE names a file with the secret, the store that rank 0 hosts
/// over TCP serves only ranks that know it. If another process hosts the store, ranks use only values that such ranks
/// have written (make_tcp_store()). A URL may omit rank and world_size if RANK and WORLD_SIZE are set. Throws
/// ConfigError for a URL that cannot be used, and CommError if the store cannot be reached in time.
Rendezvous rendezvous(const std::string& url, Seconds timeout);

}  // namespace phalanx
