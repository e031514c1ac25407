// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/backend.h"

namespace phalanx::hybrid {

/// The backends of a hybrid communicator.
struct Config {
  std::string intra = "shm";
  std::string inter = "auto";  // mpi if MPI's launcher started the ranks, otherwise gloo

  template <class V>
  void visit(V& v) {
    v("intra", intra, "backend that connects the ranks of one host");
    v("inter", inter, "backend that connects all ranks; auto: mpi under mpirun and srun --mpi=pmix, otherwise gloo");
  }
};

/// Connects all ranks by `inter`, and ranks with equal `host` by `intra` as well (framework/comm/launch/locality.h has
/// host_key()). Hosts may have different numbers of ranks, and these need not be consecutive. If all ranks are on one
/// host, the result is plain `intra`; if no two ranks share a host, it is plain `inter`. Collective, with the same
/// config on all ranks.
///
/// If `options` have levels, one of them is kHostLevel. The collectives inside hosts then use the levels below it, and
/// those between hosts use the levels above it.
///
/// If `world` has no store (mpi), the ranks of a host find each other by a file in the folder for temporary files.
///
/// Throws ConfigError if a backend is not in this program, if `auto` finds no backend, or if there are levels without
/// kHostLevel, and the errors of the backends.
CommunicatorPtr connect(const Config& config, const ConnectOptions& options, const std::string& host);

}  // namespace phalanx::hybrid
