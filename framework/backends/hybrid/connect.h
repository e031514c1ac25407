// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/backend.h"

namespace phalanx::hybrid {

/// Which backends it is made of.
struct Config {
  std::string intra = "shm";
  std::string inter = "auto";  // mpi where MPI's launcher started the ranks, otherwise gloo

  template <class V>
  void visit(V& v) {
    v("intra", intra, "backend of the ranks of one host");
    v("inter", inter, "backend of all ranks; auto: mpi under mpirun and srun --mpi=pmix, otherwise gloo");
  }
};

/// Connects all ranks by `inter`, and those of equal `host` by `intra` too (framework/comm/locality.h has host_key()).
/// Hosts need not have equal numbers of ranks, nor consecutive ones. Where all ranks are on one host this is plain
/// `intra`, and where no two are, plain `inter`. Collective, with the same config on all ranks.
///
/// Without a store in `world` (mpi) the ranks of a host meet by a file in the folder for temporary files.
///
/// Throws ConfigError when a backend is not in this program or `auto` finds none, and what the backends throw.
CommunicatorPtr connect(const Config& config, const ConnectOptions& options, const std::string& host);

}  // namespace phalanx::hybrid
